"""A manifest becomes a benchmark: its items are judged one by one, its tasks made in batches, the whole told at once.

Called by the API (small ones) and by the operation ``benchmark_import``. Until the last step nothing is to be seen but
tasks, which whoever tries again finds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from service.domain.benchmarks import (
    BenchmarkHead,
    BenchmarkItem,
    facet_summary,
    manifest_of,
    outline_digest,
)
from service.domain.cleaning import is_clean
from service.domain.errors import Invalid
from service.domain.tasks import FileRef, TaskManifest
from service.graders import registry as graders
from service.store import benchmarks
from service.store.blob_refs import project_sizes
from service.store.catalogue import NAMED_MISSING, storable
from service.store.database import Tx
from service.store.rows import BenchmarkRow
from service.store.task_batches import create_many

BATCH = 200
"""Tasks made in one transaction."""
_DIGESTS_PER_QUERY = 10_000
_SHOWN_ERRORS = 50
Entry = tuple[BenchmarkItem, str | None]
"""An item and its task's digest; later its task's id."""


@dataclass(frozen=True, slots=True)
class Brought:
    """A manifest that was read."""

    head: BenchmarkHead
    digest: str
    entries: Sequence[Entry]


def read(value: Any) -> Brought:
    """Read a manifest from parsed JSON. Raises Invalid (invalid_manifest, unstorable_text)."""
    try:
        manifest = manifest_of(value)
    except ValidationError as error:
        raise _invalid(error) from error
    head = manifest.head()
    storable(head)
    if not is_clean([[item.key, *(p.model_dump() for p in item.problems)] for item in manifest.items]):
        raise Invalid("unstorable_text", "a key or problem has NUL or half a surrogate pair")
    entries = [_entry(item) for item in manifest.items]
    digest = outline_digest(head, [item for item, _ in entries], [digest for _, digest in entries])
    return Brought(head, digest, entries)


async def find_same(tx: Tx, project_id: str, brought: Brought) -> BenchmarkRow | None:
    """Return the benchmark if it was made before. Raises Conflict("benchmark_version_taken")."""
    found = await benchmarks.find(tx, project_id, brought.head.name, brought.head.version)
    return None if found is None else benchmarks.same_or_taken(found, brought.head, brought.digest)


async def file_sizes(tx: Tx, project_id: str, brought: Brought) -> dict[str, int]:
    """Return the bytes of all files of the tasks. Raises Invalid("missing_blobs", missing=[…]), at most 1 000 named."""
    wanted = sorted({f.sha256 for item, _ in brought.entries if item.task for f in _files(item.task)})
    have: dict[str, int] = {}
    for start in range(0, len(wanted), _DIGESTS_PER_QUERY):
        have |= await project_sizes(tx, project_id, wanted[start : start + _DIGESTS_PER_QUERY])
    missing = [sha for sha in wanted if sha not in have]
    if missing:
        raise Invalid("missing_blobs", f"{len(missing)} files are not uploaded", missing=missing[:NAMED_MISSING])
    return have


def judged(brought: Brought, sizes: Mapping[str, int]) -> Sequence[Entry]:
    """Return the entries, those whose task this installation refuses without it and in quarantine, with the reason."""
    return [_judged(item, digest, sizes) for item, digest in brought.entries]


async def make_batch(tx: Tx, project_id: str, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Find or make the tasks of some entries; return the items with the tasks' ids. Raises Invalid("missing_blobs")."""
    bodies = {digest: (item.task, storable(item.task)) for item, digest in entries if item.task and digest}
    ids = await create_many(tx, project_id, bodies)
    return [(item, None if digest is None else ids[digest]) for item, digest in entries]


async def conclude(tx: Tx, project_id: str, brought: Brought, made: Sequence[Entry]) -> tuple[BenchmarkRow, bool]:
    """Make the benchmark from all its items, or find it. Raises Conflict("benchmark_version_taken")."""
    facets = facet_summary(item.task for item, _ in made if item.task)
    return await benchmarks.insert_whole(tx, project_id, brought.head, brought.digest, facets, made)


async def make_at_once(tx: Tx, project_id: str, brought: Brought) -> tuple[BenchmarkRow, bool]:
    """Do all of it in one transaction: for a few items. Raises Invalid("missing_blobs"), Conflict."""
    found = await find_same(tx, project_id, brought)
    if found is not None:
        return found, False
    entries = judged(brought, await file_sizes(tx, project_id, brought))
    return await conclude(tx, project_id, brought, await make_batch(tx, project_id, entries))


def _entry(item: BenchmarkItem) -> Entry:
    if item.task is None:
        return item, None
    try:
        storable(item.task)
        return item, item.task.digest()
    except Invalid as error:
        return item.refused(error.type, "task", error.detail), None


def _judged(item: BenchmarkItem, digest: str | None, sizes: Mapping[str, int]) -> Entry:
    if item.task is None:
        return item, None
    wrong = next((f for f in _files(item.task) if sizes.get(f.sha256) != f.size_bytes), None)
    if wrong is not None:
        return item.refused("wrong_size", wrong.path, "size_bytes differs from the uploaded file"), None
    for number, spec in enumerate(item.task.graders):
        try:
            graders.check(spec, item.task)
        except Invalid as error:
            return item.refused(error.type, f"graders/{number}", error.detail), None
    return item, digest


def _files(task: TaskManifest) -> Sequence[FileRef]:
    return (*task.visible, *task.hidden)


def _invalid(error: ValidationError) -> Invalid:
    shown = [
        {"pointer": "#/" + "/".join(str(part) for part in e["loc"])[:500], "type": e["type"], "detail": e["msg"][:500]}
        for e in error.errors(include_url=False, include_input=False, include_context=False)[:_SHOWN_ERRORS]
    ]
    return Invalid("invalid_manifest", "the manifest does not fit its schema", errors=shown)
