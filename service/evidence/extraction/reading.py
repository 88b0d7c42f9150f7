"""One batch of files read in a room, and again in smaller parts where a file took the room with it."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

import structlog

from service.domain import evidence
from service.domain.errors import Fault
from service.domain.evidence import EvidenceImage
from service.domain.limits import GIB, MIB, Limits
from service.evidence.batches import IN_MEMORY_BYTES, Item, fits_in_memory
from service.evidence.extraction.answers import Answer, Found, Image, answers, pictures, shown, taken
from service.evidence.extraction.bundle import extractor_bundle
from service.evidence.extraction.inside.sharing import level
from service.sandboxes.contract import FileSource, LauncherLost, Sandbox, SandboxError, ToolFailed
from service.sandboxes.rooms import Rooms

IMAGE = "documents"
ANSWER_BYTES = 64 * MIB
FILE_S, BATCH_S = 130.0, 60.0
"""A batch gets so many seconds, and so many for each of its files; two are read at once, and most take no second."""
_LIMITS = Limits(memory_bytes=3 * GIB, cpus=2, pids=256, disk_bytes=2 * GIB, inodes=20_000)
_SMALL = _LIMITS.model_copy(update={"disk_bytes": 6 * IN_MEMORY_BYTES})
_ARGV = ("/usr/bin/python3", "-I", "extract.pyz", "in")
_SIGNATURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class RoomFailed(Fault):
    """There was no room, or it could not be filled."""


class Reading:
    """Of one batch; ``found`` is completed in place."""

    def __init__(
        self, rooms: Rooms, keep: Callable[[Mapping[str, bytes]], None], until: float, images_left: int
    ) -> None:
        self._rooms = rooms
        self._keep = keep
        self._until = until
        self.images_left = images_left
        """Pictures that the document still takes."""

    async def read(self, batch: Sequence[Item], found: list[Found], *, last: bool = False) -> None:
        """``last``: what is not answered now has failed. Raises RoomFailed."""
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            return _fail(batch, found, "timeout", "the time of the whole deliverable was used up")
        await self._in_room(batch, found, left_s)
        missing = [item for item in batch if found[item.place].kind == _UNREAD]
        if not missing or last:
            return _fail(missing, found, "extractor_failed", "no answer about this file")
        # One of them ended the program or the room, or the engine did: the others are not to suffer for it, and one that is
        # alone has a second try.
        half = (len(missing) + 1) // 2
        for some in (missing[:half], missing[half:]):
            if some:
                await self.read(some, found, last=len(batch) == 1)
        return None

    async def _in_room(self, batch: Sequence[Item], found: list[Found], left_s: float) -> None:
        """Take what is said. Raises RoomFailed; a room that dies meanwhile leaves files unread."""
        for item in batch:
            found[item.place].kind = _UNREAD
        small, filled = fits_in_memory(batch), False
        try:
            async with self._rooms.open(IMAGE, _SMALL if small else _LIMITS, in_memory=small) as room:
                await room.write_files(_sources(batch))
                filled = True
                said = await _ask(room, batch, left_s)
                for item in batch:
                    if item.place in said:
                        found[item.place] = taken(found[item.place], said[item.place])
                await self._take_pictures(room, said, found)
        except (LauncherLost, ToolFailed) as error:
            if not filled:
                raise RoomFailed("room_failed", str(error)) from error
            log.warning("evidence_room_died", error=str(error))
        except (SandboxError, OSError) as error:
            raise RoomFailed("room_failed", str(error)) from error

    async def _take_pictures(self, room: Sandbox, said: Mapping[int, Answer], found: list[Found]) -> None:
        """Fetch pictures, in fair shares of what the document still takes; the rest is counted as left out."""
        share = level([len(answer.images) for answer in said.values()], self.images_left)
        for place in sorted(said):
            one, rows = found[place], pictures(said[place], share)
            fetched = [await _fetched(room, row) for row in rows]
            taken_rows = [(row, data) for row, data in zip(rows, fetched, strict=True) if data is not None]
            if taken_rows:
                await asyncio.to_thread(self._keep, {row[-1]: data for row, data in taken_rows})
            one.images += [_image(row) for row, _ in taken_rows]
            one.omit_images(len(said[place].images) - len(taken_rows))
            self.images_left -= len(taken_rows)


_UNREAD = "unread"


def _fail(batch: Sequence[Item], found: list[Found], error: str, detail: str) -> None:
    for item in batch:
        one = found[item.place]
        one.kind, one.state, one.error, one.detail = "binary", "failed", error, detail


async def _ask(room: Sandbox, batch: Sequence[Item], left_s: float) -> dict[int, Answer]:
    caps = {
        "file_chars": evidence.FILE_CHARS,
        "file_images": evidence.FILE_IMAGES,
        "image_pixels": evidence.IMAGE_PIXELS,
        "pages": evidence.PAGES,
        "parts": evidence.MAX_PARTS,
        "notes": evidence.MAX_NOTES,
    }
    question = json.dumps({"caps": caps, "files": [[item.place, item.ext] for item in batch]})
    timeout_s = min(left_s, BATCH_S + FILE_S * len(batch))
    done = await room.exec(_ARGV, stdin=question.encode(), timeout_s=timeout_s, limit_bytes=ANSWER_BYTES)
    if done.code != 0:
        log.warning("extractor", code=done.code, signal=done.signal, late=done.timed_out, stderr=done.stderr[-500:])
    return await asyncio.to_thread(answers, done.stdout, frozenset(item.place for item in batch))


async def _fetched(room: Sandbox, row: Image) -> bytes | None:
    """Return a picture that is what was announced. It is decoded by nobody here: a digest and a signature are compared."""
    *_, media_type, _, _, size, digest = row
    try:
        data = await room.read_file(f"in/pictures/{digest}", limit_bytes=size)
    except (ToolFailed, LauncherLost):
        return None
    fits = len(data) == size and data.startswith(_SIGNATURES[media_type]) and sha256(data).hexdigest() == digest
    return data if fits else None


def _image(row: Image) -> EvidenceImage:
    label, source, media_type, width, height, size, digest = row
    return EvidenceImage(
        label=shown(label),
        source=source,
        sha256=digest,
        media_type=media_type,
        width=width,
        height=height,
        size_bytes=size,
    )


def _sources(batch: Sequence[Item]) -> list[FileSource]:
    files = [FileSource(f"in/{item.place}/file", file=item.content) for item in batch]
    return [FileSource("extract.pyz", data=extractor_bundle()), *files]
