"""Which tasks a command means: directories, ids, names, whole benchmarks; narrowed by globs, facets, a limit and a seed."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from workstead.aio import AsyncClient
from workstead.errors import WorksteadError
from workstead.task_dir import Bundle, read_task_dir

BENCHMARK = "benchmark:"
TASK_ID = "task_"
RUNNABLE = ("ok", "disputed")
"""Items of these states are run; quarantined ones are not, and are counted."""


class NothingSelected(WorksteadError):
    """No task is meant by what was said."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A task that may be run; ``source`` is its id, or the bundle that makes it."""

    name: str
    source: str | Bundle
    facets: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Globs are matched against the whole name, case counts; a facet with several values matches any of them."""

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    facets: Mapping[str, str] = field(default_factory=dict[str, str])
    limit: int | None = None
    seed: int | None = None

    def apply(self, found: Iterable[Candidate]) -> list[Candidate]:
        """Return what is wanted: with a seed the limit takes a random sample that the seed repeats, else the first."""
        kept = [c for c in found if self._wants(c)]
        if self.seed is not None:
            kept.sort(key=lambda c: c.name)
            random.Random(self.seed).shuffle(kept)  # noqa: S311 - a sample, not a secret
        return kept[: self.limit]

    def _wants(self, candidate: Candidate) -> bool:
        named = not self.include or any(fnmatchcase(candidate.name, glob) for glob in self.include)
        unwanted = any(fnmatchcase(candidate.name, glob) for glob in self.exclude)
        return named and not unwanted and all(_has(candidate.facets.get(k), v) for k, v in self.facets.items())


def _has(facet: Any, value: str) -> bool:
    values = cast("list[Any]", facet) if isinstance(facet, list) else [facet]
    return any(v is not None and str(v) == value for v in values)


async def select(client: AsyncClient, words: Sequence[str], narrowing: Narrowing) -> list[str]:
    """Return the ids of the tasks meant, uploading what is a directory. Each task once, in the order given.

    Raises NothingSelected, InvalidInput (a directory), Problem.
    """
    found: dict[str, Candidate] = {}
    for word in words:
        for candidate in await candidates(client, word, narrowing.facets):
            found.setdefault(_identity(candidate), candidate)
    chosen = narrowing.apply(found.values())
    if not chosen:
        raise NothingSelected(f"none of the {len(found)} tasks found is wanted by the options given")
    ids = [c.source if isinstance(c.source, str) else (await client.tasks.create(c.source)).id for c in chosen]
    return list(dict.fromkeys(ids))


def _identity(candidate: Candidate) -> str:
    return candidate.source if isinstance(candidate.source, str) else f"directory {candidate.name}"


async def candidates(client: AsyncClient, word: str, facets: Mapping[str, str]) -> list[Candidate]:
    """Return the tasks that one word means. Raises NothingSelected, InvalidInput, Problem."""
    if word.startswith(BENCHMARK):
        return await _of_benchmark(client, word.removeprefix(BENCHMARK), facets)
    if word.startswith(TASK_ID) and "/" not in word:
        task = await client.tasks.get(word)
        return [Candidate(task.name, task.id, _facets(task.manifest))]
    return _in_directory(Path(word)) or [await _by_name(client, word)]


async def _of_benchmark(client: AsyncClient, ref: str, facets: Mapping[str, str]) -> list[Candidate]:
    """Return the items whose task bears ``facets`` (the service looks), under their keys."""
    benchmark = await client.benchmarks.find(ref)
    where = {"status": list(RUNNABLE), **{f"facet.{key}": value for key, value in facets.items()}}
    items = [item async for item in client.benchmarks.items(benchmark.id, where)]
    return [Candidate(item.key, item.task.id, facets) for item in items if item.task is not None]


def _in_directory(path: Path) -> list[Candidate]:
    return [_of_directory(p) for p in task_directories(path)] if path.is_dir() else []


def _of_directory(path: Path) -> Candidate:
    bundle = read_task_dir(path)
    return Candidate(str(bundle.manifest["name"]), bundle, _facets(bundle.manifest))


def task_directories(path: Path) -> list[Path]:
    """Return ``path`` if it is a task directory, else those directly below it. Raises NothingSelected."""
    if (path / "task.toml").exists():
        return [path]
    found = sorted(p for p in path.iterdir() if (p / "task.toml").exists())
    if not found:
        raise NothingSelected(f"{path} is no task directory and holds none (a task directory has a task.toml)")
    return found


async def _by_name(client: AsyncClient, name: str) -> Candidate:
    newest = None
    async for task in client.tasks.list({"name": name}):
        newest = task  # oldest first: the last one is the version made last
    if newest is None:
        raise NothingSelected(f"{name!r} is no directory here, and the service has no task of that name")
    return Candidate(newest.name, newest.id, _facets(newest.manifest))


def _facets(manifest: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", (manifest or {}).get("facets") or {})
