"""Makes the evidence document of a sealed deliverable: batches of files into rooms, answers taken as untrusted.

A file that breaks its reader is a line of the document. What is ours (no room to be had, a lost blob) is
:class:`EvidenceUnavailable`, and no document.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import structlog

from service.domain import evidence
from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.errors import Fault
from service.domain.evidence import MAX_FILES, TOTAL_CHARS, TOTAL_IMAGES, EvidenceDocument, Omitted
from service.evidence.batches import Item, batches
from service.evidence.extraction.answers import Found, visible
from service.evidence.extraction.inside.kinds import CODE
from service.evidence.extraction.inside.sharing import Piece, level, share
from service.evidence.extraction.reading import Reading, RoomFailed
from service.evidence.integrity.quick import MAX_FILE, MAX_TEXT, PLAIN, claim, plain_text
from service.sandboxes.rooms import Rooms

BATCH_BYTES = 512 << 20
BATCH_FILES = 40
"""Their answers are held at once."""
MOST_S = 1800.0
"""Of one document."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
Keep = Callable[[Mapping[str, bytes]], None]
"""Stores pictures by their digests. Blocks; called in a thread."""


class EvidenceUnavailable(Fault):
    """It cannot be made now; ``type`` says why: ``no_rooms``, ``room_failed``, ``deliverable_missing``."""


async def make_document(
    entries: Sequence[ArtifactEntry], content_of: Callable[[str], Path], rooms: Rooms | None, keep: Keep
) -> EvidenceDocument:
    """Read every regular file. ``content_of`` gives the file of a digest. Raises EvidenceUnavailable."""
    files = [e for e in entries if e.kind is EntryKind.FILE and e.sha256 is not None]
    listed = files[:MAX_FILES]
    try:
        found, pending = await asyncio.to_thread(_sort, listed, content_of)
    except OSError as error:
        raise EvidenceUnavailable("deliverable_missing", str(error)) from error
    if pending and rooms is None:
        raise EvidenceUnavailable("no_rooms", "no engine here")
    images_left, until = TOTAL_IMAGES, time.monotonic() + MOST_S
    for batch in batches(pending, BATCH_BYTES, BATCH_FILES):
        assert rooms is not None
        reading = Reading(rooms, keep, until, images_left)
        try:
            await reading.read(batch, found)
        except RoomFailed as error:
            raise EvidenceUnavailable("room_failed", error.detail) from error
        images_left = reading.images_left
        _share(found)  # what is held stays bounded, and a later cut leaves the same
    _share(found)
    skipped = [(e.path, str(e.kind)) for e in entries if e.kind not in (EntryKind.FILE, EntryKind.DIRECTORY)]
    return _document(found, len(files) - len(listed), skipped[:MAX_FILES])


def _sort(files: Sequence[ArtifactEntry], content_of: Callable[[str], Path]) -> tuple[list[Found], list[Item]]:
    """Return what is known of each file, and what a room must read, by its place among them."""
    found: list[Found] = []
    pending: list[Item] = []
    for place, entry in enumerate(files):
        content = content_of(entry.sha256 or "")
        content.stat()  # a file that is gone is our loss, and nothing that the deliverable says
        one = Found(entry.path, entry.sha256 or "", entry.size_bytes)
        ext = claim(entry.path) or ""
        if not _read_here(one, ext, content):
            pending.append(Item(place, ext, entry.size_bytes, content))
        found.append(one)
    return found, pending


def _read_here(found: Found, ext: str, content: Path) -> bool:
    """Read a file that needs no room: decoding UTF-8 is not parsing. Raises OSError."""
    if found.size_bytes == 0:
        found.notes.append("the file is empty")
        return True
    if found.size_bytes > MAX_FILE:
        found.state, found.error, found.detail = "failed", "too_large", f"more than {MAX_FILE >> 20} MiB"
        return True
    if ext not in PLAIN | CODE or found.size_bytes > MAX_TEXT:
        return False
    text = plain_text(content.read_bytes())
    if text is None:
        return False
    found.kind, found.state = ("code" if ext in CODE else "text"), "extracted"
    if found.kind == "code":
        found.facts["language"] = ext
    found.facts |= {"encoding": "utf-8", "rows": text.count("\n") + (not text.endswith("\n"))}
    found.pieces.append(Piece(found.kind, "", visible(text.removeprefix("\ufeff"))).cut(evidence.FILE_CHARS))
    return True


def _share(found: Sequence[Found]) -> None:
    sizes = [one.kept for one in found]
    if sum(sizes) > TOTAL_CHARS:
        each = level(sizes, TOTAL_CHARS)
        for one in found:
            share(one.pieces, each)


def _document(found: Sequence[Found], not_listed: int, skipped: Sequence[tuple[str, str]]) -> EvidenceDocument:
    files = tuple(one.finished() for one in found)
    omitted = Omitted(
        chars=sum(f.omitted.chars for f in files),
        rows=sum(f.omitted.rows for f in files),
        parts=sum(f.omitted.parts for f in files),
        images=sum(f.omitted.images for f in files),
    )
    return EvidenceDocument(files=files, not_listed=not_listed, skipped=tuple(skipped), omitted=omitted)
