"""Deliverables to disk. Their paths are the agent's words: nothing is written outside the folder."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workstead.aio import AsyncClient
from workstead.cli.together import together
from workstead.errors import WorksteadError
from workstead.models import Artifact, Run
from workstead.terminal import one_line, safe

MAX_NAME_BYTES = 255
AT_ONCE = 8


class UnsafePath(WorksteadError):
    """A path that would leave the folder."""


@dataclass(frozen=True, slots=True)
class Fetched:
    folder: Path
    files: int
    skipped: Sequence[str]
    """What could not be written here, in words."""


def below(folder: Path, path: str) -> Path:
    """Return where ``path`` lies below ``folder``. Raises UnsafePath for anything but a clean relative path."""
    parts = path.split("/")
    if any(p in ("", ".", "..") or "\\" in p or safe(p) != p or len(p.encode()) > MAX_NAME_BYTES for p in parts):
        raise UnsafePath(f"the path {path!r} of a deliverable cannot be written here")
    return folder.joinpath(*parts)


def folder_name(text: str) -> str:
    """Return a name for a folder made from any text."""
    return re.sub(r"[^A-Za-z0-9._@=+-]+", "-", text).strip("-.")[:80] or "run"


async def fetch(client: AsyncClient, run: Run, root: Path) -> Fetched | None:
    """Download the run's deliverable into a new folder below ``root``; None if it has no file.

    Raises Problem, Disconnected, FileExistsError.
    """
    return await fetch_into(
        client, run.id, root / folder_name(f"{run.task.name}.{run.agent.label}.{run.sample}.{run.id[-6:]}")
    )


async def fetch_into(client: AsyncClient, run_id: str, folder: Path) -> Fetched | None:
    """Download all files of a deliverable below ``folder``; None if there is none. Errors as :func:`fetch`."""
    files = [a async for a in client.runs.artifacts(run_id) if a.kind == "file"]
    if not files:
        return None
    targets, skipped = _placed(folder, files)

    async def one(path: str) -> None:
        _mkdir(targets[path].parent)
        await client.runs.download(run_id, path, targets[path])

    await together(one, list(targets), AT_ONCE)
    return Fetched(folder, len(targets), skipped)


def _placed(folder: Path, files: Sequence[Artifact]) -> tuple[dict[str, Path], list[str]]:
    """Return path → file to write; a name that cannot be written here costs that file only."""
    targets: dict[str, Path] = {}
    skipped: list[str] = []
    for artifact in files:
        try:
            targets[artifact.path] = below(folder, artifact.path)
        except UnsafePath as error:
            skipped.append(one_line(str(error), 400))
    return targets, skipped


def _mkdir(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
