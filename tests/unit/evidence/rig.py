"""A room of a test's making: keeps what was put in and answers what it is told to."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.limits import Limits
from service.sandboxes.contract import ExecResult, FileSource, Sandbox

Answerer = Callable[[list[tuple[int, str]]], bytes]


class Room:
    def __init__(self, answer: Answerer) -> None:
        self.files: list[FileSource] = []
        self.asked: list[tuple[int, str]] = []
        self._answer = answer

    async def write_files(self, files: Sequence[FileSource]) -> None:
        self.files += files

    async def exec(self, argv: Sequence[str], *, stdin: bytes = b"", **_: Any) -> ExecResult:
        self.asked = [(n, ext) for n, ext in json.loads(stdin)]
        return ExecResult(0, None, self._answer(self.asked), b"")


class ScriptedRooms:
    """Implements ``Rooms``."""

    def __init__(self, answer: Answerer) -> None:
        self.rooms: list[Room] = []
        self.sizes: list[Limits] = []
        self.in_memory: list[bool] = []
        self._answer = answer

    @asynccontextmanager
    async def open(
        self,
        environment: str,
        limits: Limits,
        *,
        in_memory: bool = False,
        runs_code: bool = False,
        verifier: bool = False,
    ) -> AsyncGenerator[Sandbox]:
        assert (environment, runs_code) == ("documents", False)
        self.rooms.append(Room(self._answer))
        self.sizes.append(limits)
        self.in_memory.append(in_memory)
        yield cast("Sandbox", self.rooms[-1])


class Shelf:
    """Files of a deliverable, and where their contents lie."""

    def __init__(self, folder: Path) -> None:
        self.entries: list[ArtifactEntry] = []
        self._folder = folder

    def put(self, path: str, data: bytes, size: int | None = None) -> None:
        digest = sha256(data).hexdigest()
        self.path(digest).write_bytes(data)
        self.entries.append(ArtifactEntry(path, EntryKind.FILE, len(data) if size is None else size, digest))

    def path(self, digest: str) -> Path:
        return self._folder / digest


def line(n: int, **fields: Any) -> bytes:
    said: dict[str, Any] = {"n": n, "sniffed": "pdf", "opens": True, "problems": [], "facts": {}, **fields}
    return json.dumps(said).encode() + b"\n"
