"""Deliverables to disk. Their paths are the agent's words: nothing is written outside the folder."""

import re
from pathlib import Path

from workstead.aio import AsyncClient
from workstead.errors import WorksteadError
from workstead.models import Run
from workstead.terminal import safe

MAX_NAME_BYTES = 255


class UnsafePath(WorksteadError):
    """A path that would leave the folder."""


def below(folder: Path, path: str) -> Path:
    """Return where ``path`` lies below ``folder``. Raises UnsafePath for anything but a clean relative path."""
    parts = path.split("/")
    if any(p in ("", ".", "..") or "\\" in p or safe(p) != p or len(p.encode()) > MAX_NAME_BYTES for p in parts):
        raise UnsafePath(f"the path {path!r} of a deliverable cannot be written here")
    return folder.joinpath(*parts)


def folder_name(text: str) -> str:
    """Return a name for a folder made from any text."""
    return re.sub(r"[^A-Za-z0-9._@=+-]+", "-", text).strip("-.")[:80] or "run"


async def fetch(client: AsyncClient, run: Run, root: Path) -> Path | None:
    """Download the run's deliverable into a new folder below ``root``; None if it has no file.

    Raises UnsafePath, Problem, Disconnected, FileExistsError.
    """
    files = [a async for a in client.runs.artifacts(run.id) if a.kind == "file"]
    if not files:
        return None
    folder = root / folder_name(f"{run.task.name}.{run.agent.label}.{run.sample}.{run.id[-6:]}")
    for artifact in files:
        target = below(folder, artifact.path)
        _mkdir(target.parent)
        await client.runs.download(run.id, artifact.path, target)
    return folder


def _mkdir(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
