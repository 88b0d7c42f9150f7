"""A film of a run's recorded pictures, one still a step, made in a room of ours: the pictures are foreign bytes."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from service.domain.desktop import Size
from service.domain.errors import Unavailable
from service.domain.limits import GIB, MIB, Limits
from service.sandboxes.contract import FileSource, LauncherLost, Sandbox, SandboxError, ToolFailed
from service.sandboxes.rooms import Rooms

IMAGE = "documents"
MOST_STILLS = 5000
MOST_BYTES = 256 * MIB
"""Of a film."""
LONG_EDGE = 1920
"""Most pixels of a film's longer side; larger stills are shrunk to it."""
STRIP = 24
"""Height of the caption below a still."""
BATCH_STILLS, BATCH_BYTES = 200, 256 * MIB
_BATCH_S = 240.0
_CHUNK = 8 * MIB
_LIMITS = Limits(memory_bytes=2 * GIB, cpus=2, pids=64, disk_bytes=GIB, inodes=4096)
_RUN = ("/usr/bin/python3", "-I", "projector.py")
Take = Callable[[AsyncIterator[bytes]], Awaitable[tuple[str, int]]]
"""Keeps the film and returns its digest and size."""


@dataclass(frozen=True, slots=True)
class Still:
    content: Path
    size_bytes: int
    caption: str
    """Empty: none is shown."""


@dataclass(frozen=True, slots=True)
class Film:
    sha256: str
    size_bytes: int
    stills: int
    skipped: int
    """Recorded pictures that are none."""


def film_size(first: Size, *, captions: bool) -> Size:
    """Return the size of a film's frames, both sides being even: codecs want that."""
    scale = min(1.0, LONG_EDGE / max(first.width, first.height))
    width, height = (max(2, round(side * scale)) for side in (first.width, first.height))
    return Size(width=width + width % 2, height=height + height % 2 + (STRIP if captions else 0))


async def make_film(
    stills: Sequence[Still], size: Size, fps: int, rooms: Rooms, take: Take, told: Callable[[int], Awaitable[None]]
) -> Film | None:
    """Return the film; null if none of the stills is a picture. ``told``: how many stills are done.

    Raises Unavailable ``room_failed`` (ours, or stills that break their decoder: worth another try), what ``take`` and
    ``told`` raise.
    """
    try:
        async with rooms.open(IMAGE, _LIMITS) as room:
            return await _made(room, stills, size, fps, take, told)
    except (SandboxError, OSError) as error:
        raise Unavailable("room_failed", str(error)[:500]) from error


async def _made(
    room: Sandbox, stills: Sequence[Still], size: Size, fps: int, take: Take, told: Callable[[int], Awaitable[None]]
) -> Film | None:
    await room.write_files([FileSource("projector.py", data=_program())])
    pieces = shown = done = 0
    for batch in _batches(stills):
        await room.write_files([FileSource(f"in/{n}", file=still.content) for n, still in enumerate(batch)])
        wanted = {**size.model_dump(), "fps": fps, "captions": [still.caption for still in batch]}
        shown += _count(await _run(room, "piece", str(pieces), stdin=json.dumps(wanted).encode()), "shown", len(batch))
        pieces, done = pieces + 1, done + len(batch)
        await told(done)
    if not shown:
        return None
    joined = await _run(room, "join", str(pieces), str(MOST_BYTES))
    digest, length = await take(_read(room, _count(joined, "bytes", MOST_BYTES + MIB)))
    return Film(digest, length, shown, len(stills) - shown)


async def _run(room: Sandbox, *arguments: str, stdin: bytes = b"") -> Mapping[str, Any]:
    done = await room.exec((*_RUN, *arguments), stdin=stdin, timeout_s=_BATCH_S)
    try:
        said: object = json.loads(done.stdout) if done.code == 0 else None
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise ToolFailed("film", f"code {done.code}, signal {done.signal}: {done.stderr[-300:]!r}")
    return cast(Mapping[str, Any], said)


def _count(said: Mapping[str, Any], name: str, most: int) -> int:
    """The room saw foreign bytes: its word is bounded."""
    value = said.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ToolFailed("film", f"{name} is {value!r:.100}")
    return value


async def _read(room: Sandbox, length: int) -> AsyncIterator[bytes]:
    for number in range(-(-length // _CHUNK)):
        argv = ("/bin/dd", "if=film.mp4", f"bs={_CHUNK}", f"skip={number}", "count=1", "status=none")
        part = await room.exec(argv, limit_bytes=_CHUNK)
        if part.code != 0 or len(part.stdout) != min(_CHUNK, length - number * _CHUNK):
            raise LauncherLost("film", "its bytes are not those that were told")
        yield part.stdout


def _batches(stills: Sequence[Still]) -> Iterator[Sequence[Still]]:
    batch: list[Still] = []
    size = 0
    for still in stills:
        if batch and (len(batch) >= BATCH_STILLS or size + still.size_bytes > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(still)
        size += still.size_bytes
    if batch:
        yield batch


@cache
def _program() -> bytes:
    return Path(__file__).with_name("projector.py").read_bytes()
