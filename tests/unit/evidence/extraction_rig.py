"""A room of a test's making for the extracting program, and readers that are run here."""

import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from service.domain.limits import Limits
from service.evidence.extraction.inside.contract import Caps, Output
from service.evidence.extraction.inside.kinds import kind_of
from service.evidence.extraction.inside.registry import reader_of
from service.sandboxes.contract import ExecResult, FileSource, LauncherLost, Sandbox, ToolFailed

CAPS = Caps(file_chars=200_000, file_images=32, image_pixels=1600, pages=30, parts=2000, notes=50)
Answerer = Callable[[list[tuple[int, str]]], bytes]
PNG = b"\x89PNG\r\n\x1a\n"


class Room:
    def __init__(self, answer: Answerer, pictures: Mapping[str, bytes]) -> None:
        self.files: list[FileSource] = []
        self.asked: dict[str, Any] = {}
        self._answer = answer
        self._pictures = pictures

    async def write_files(self, files: Sequence[FileSource]) -> None:
        self.files += files

    async def exec(self, argv: Sequence[str], *, stdin: bytes = b"", **_: Any) -> ExecResult:
        self.asked = json.loads(stdin)
        return ExecResult(0, None, self._answer([(n, ext) for n, ext in self.asked["files"]]), b"")

    async def read_file(self, path: str, *, limit_bytes: int) -> bytes:
        data = self._pictures.get(path.rpartition("/")[2])
        if data is None or len(data) > limit_bytes:
            raise ToolFailed("no_such_file", path)
        return data


class ScriptedRooms:
    """Implements ``Rooms``."""

    def __init__(self, answer: Answerer, pictures: Mapping[str, bytes] | None = None) -> None:
        self.rooms: list[Room] = []
        self.limits: list[tuple[Limits, bool]] = []
        self._answer = answer
        self._pictures = pictures or {}

    @asynccontextmanager
    async def open(
        self, environment: str, limits: Limits, *, in_memory: bool = False, runs_code: bool = False, **_: Any
    ) -> AsyncGenerator[Sandbox]:
        assert (environment, runs_code) == ("documents", False)
        self.rooms.append(Room(self._answer, self._pictures))
        self.limits.append((limits, in_memory))
        yield cast("Sandbox", self.rooms[-1])


def died(_: list[tuple[int, str]]) -> bytes:
    raise LauncherLost("launcher_lost", "the room is gone")


def line(n: int, *pieces: tuple[str, str, str, str, int], **fields: Any) -> bytes:
    said: dict[str, Any] = {"n": n, "kind": "pdf", "state": "extracted", "pieces": pieces, **fields}
    return json.dumps(said).encode() + b"\n"


def text(words: str) -> tuple[str, str, str, str, int]:
    return ("page", "page 1", words, "", 0)


def picture(data: bytes, **other: Any) -> list[Any]:
    row = {
        "label": "page 1",
        "source": "page",
        "media": "image/png",
        "w": 4,
        "h": 4,
        "size": len(data),
        "sha": sha256(data).hexdigest(),
    }
    return [*(row | other).values()]


def read(folder: Path, name: str, data: bytes, caps: Caps = CAPS) -> Output:
    """Read a file as the room's program does, in this process. Raises Failed, Trouble."""
    path = folder / "file"
    path.write_bytes(data)
    ext = name.rpartition(".")[2]
    kind, note = kind_of(path, ext)
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    out = Output(kind, ext, scratch, caps, until=time.monotonic() + 60)
    if note:
        out.note(note)
    reader = reader_of(kind)
    assert reader is not None, kind
    reader(path, out)
    return out


def words(out: Output, *kinds: str) -> str:
    return "\n".join(p.head + p.tail for p in out.pieces if not kinds or p.kind in kinds)
