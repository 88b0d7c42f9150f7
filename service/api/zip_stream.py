"""A zip of sealed files, made while it is sent: nothing is kept on disk, at most a few chunks in memory."""

import asyncio
import io
import json
import zipfile
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, BinaryIO

from service.api.downloads import CHUNK
from service.domain.artifacts import REASONS, EntryKind
from service.store.rows import ArtifactRow

MANIFEST = ".workstead-manifest.json"
"""Lists every entry of the deliverable, also those that could not be taken."""
_OLDEST = (1980, 1, 1, 0, 0, 0)


class _Sink(io.RawIOBase):
    """What zipfile writes to: it cannot seek, so sizes follow each member."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken, self._pieces = b"".join(self._pieces), []
        return taken


def member_name(path: str) -> str:
    """Return ``path`` as a zip member's name that no unpacker can take for another place."""
    return path.replace("\\", "%5C").replace(":", "%3A").lstrip("/")


def _manifest_name(entries: Sequence[ArtifactRow]) -> str:
    """Return a name that no file and no folder of the deliverable has."""
    taken = {entry.path.partition("/")[0] for entry in entries}
    name = MANIFEST
    while name in taken:
        name = f"_{name}"
    return name


async def zip_of(entries: Sequence[ArtifactRow], open_blob: Callable[[str], BinaryIO]) -> AsyncIterator[bytes]:
    """Yield the bytes of a zip with all files of ``entries`` and the manifest."""
    sink = _Sink()
    manifest = json.dumps([_entry(e) for e in entries], indent=1)
    # A context, for readers that go away: the collector would close the sink before the archive.
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.writestr(zipfile.ZipInfo(_manifest_name(entries), _OLDEST), manifest)
        for entry in entries:
            if entry.kind != EntryKind.FILE or entry.sha256 is None:
                continue
            info = zipfile.ZipInfo(member_name(entry.path), _OLDEST)
            info.external_attr = 0o100644 << 16
            with open_blob(entry.sha256) as file, archive.open(info, "w", force_zip64=True) as member:
                while piece := await asyncio.to_thread(file.read, CHUNK):
                    member.write(piece)
                    yield sink.take()
    yield sink.take()


def _entry(row: ArtifactRow) -> dict[str, str | int | None]:
    return {
        "path": row.path,
        "kind": row.kind,
        "reason": REASONS.get(row.kind),
        "size_bytes": row.size_bytes,
        "sha256": row.sha256,
        "link_target": row.link_target,
    }
