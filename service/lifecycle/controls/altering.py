"""The first quarter of a deliverable: of each text its first characters, of the other files those that come first."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.lifecycle.uploads import Uploaded
from service.store.blobs import BlobStore

TEXT_BYTES = 16 << 20
"""Larger files are taken for no text."""
SHARE = 4


@dataclass(frozen=True, slots=True)
class Altered:
    files: tuple[Uploaded, ...]
    how: str
    """In words, for the run's labels."""
    made: tuple[tuple[str, int], ...] = ()
    """Digest and bytes of blobs that nobody needs yet."""


def quartered(entries: Sequence[ArtifactEntry], blobs: BlobStore) -> Altered:
    """Return the first quarter. Reads texts whole; blocks. Raises NotFound for a file that the content store lost."""
    files = [e for e in entries if e.kind is EntryKind.FILE and e.sha256 is not None]
    texts = {e.path: text for e in files if (text := _text(e, blobs)) is not None}
    cut = {path: text[: len(text) // SHARE] for path, text in texts.items()}
    stored = {path: blobs.store_bytes(text.encode()) for path, text in cut.items() if text}
    others = [e for e in files if e.path not in texts]
    kept = _first(others)
    new = [Uploaded(path, sha, size) for path, (sha, size) in stored.items()]
    how = f"{len(texts)} texts cut to a quarter, {len(kept)} of {len(others)} other files kept"
    return Altered((*new, *map(_same, kept)), how, tuple(stored.values()))


def whole(entries: Sequence[ArtifactEntry], how: str) -> Altered:
    """Return a deliverable as it is."""
    return Altered(tuple(_same(e) for e in entries if e.kind is EntryKind.FILE and e.sha256 is not None), how)


def _first(others: Sequence[ArtifactEntry]) -> list[ArtifactEntry]:
    """The first files, by path, that together have no more than a quarter of the bytes."""
    left = sum(e.size_bytes for e in others) // SHARE
    kept: list[ArtifactEntry] = []
    for entry in sorted(others, key=lambda e: e.path):
        if entry.size_bytes > left:
            break
        kept.append(entry)
        left -= entry.size_bytes
    return kept


def _text(entry: ArtifactEntry, blobs: BlobStore) -> str | None:
    """Return the file as text, or None where it is none. An empty file is a text."""
    if entry.size_bytes > TEXT_BYTES:
        return None
    data = blobs.read_bytes(entry.sha256 or "", TEXT_BYTES)
    try:
        text = codecs.decode(data, "utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _same(entry: ArtifactEntry) -> Uploaded:
    assert entry.sha256 is not None
    return Uploaded(entry.path, entry.sha256, entry.size_bytes)
