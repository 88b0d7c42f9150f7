"""Tasks that are alike to scaffolds: each agent is checked against one task of each shape, not against ten thousand runs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from service.domain.tasks import TaskManifest, canonical_digest
from service.scaffolds.oracle.scaffold import SOLUTION

_LOOKED_AT = frozenset({"environment", "collect", "limits", "network", "allow_hosts", "deny_hosts", "client"})
_TASK_FOLDER = "task_folder/"


@dataclass(frozen=True, slots=True)
class Shape:
    task_ids: tuple[str, ...]
    longest: str
    """The one of them with the most text: what has room for it has room for all."""
    denied: tuple[str, ...]
    """Hosts that their benchmarks name beside their own."""


def shapes_of(manifests: Mapping[str, TaskManifest], denied: Mapping[str, tuple[str, ...]]) -> list[Shape]:
    """Return the shapes, each task in one of them. Nothing that a plan or a run's row depends on differs within one, but
    for texts: those of the instruction and of file names only make prompts and arguments longer."""
    alike: dict[str, list[str]] = defaultdict(list)
    for task_id, manifest in manifests.items():
        alike[_digest(manifest, denied.get(task_id, ()))].append(task_id)
    return [
        Shape(tuple(ids), max(ids, key=lambda one: _length(manifests[one])), denied.get(ids[0], ()))
        for ids in alike.values()
    ]


def _digest(manifest: TaskManifest, denied: Iterable[str]) -> str:
    body = manifest.model_dump(mode="json", include=set(_LOOKED_AT))
    solved = any(f.path.startswith(SOLUTION) for f in manifest.hidden)
    folder = any(f.path.startswith(_TASK_FOLDER) for f in manifest.visible)
    return canonical_digest([body, solved, folder, [*denied]])


def _length(manifest: TaskManifest) -> int:
    return len(manifest.instruction.encode()) + sum(len(f.path.encode()) + 16 for f in manifest.visible)
