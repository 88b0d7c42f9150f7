"""An image that was uploaded as an archive: its members become staged files, its documents say which are its parts."""

import asyncio
from collections.abc import Mapping

from service.archives.contract import ArchiveLimits
from service.archives.image_archives import MAX_DOCUMENT_BYTES, ImageArchiveReader, find_parts, kind_of
from service.archives.meter import Meter
from service.archives.reading import inflated
from service.domain.errors import Invalid, NotFound
from service.domain.images import MAX_IMAGE_BYTES, MAX_LAYERS
from service.domain.limits import MIB
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.image_import.gathered import Gathered, Progress, feed_file
from service.lifecycle.staged_members import StagedMembers
from service.store.staging import StagedFile, Staging

LIMITS = ArchiveLimits(
    total_bytes=MAX_IMAGE_BYTES + 64 * MIB, member_bytes=MAX_IMAGE_BYTES, entries=50 * MAX_LAYERS, depth=8
)


async def unpack(ctx: OperationContext, staging: Staging, sha256: str, progress: Progress) -> Gathered:
    """Raises Invalid (missing_blobs, image_malformed, archive_…), JobCancelled, Unavailable."""
    try:
        progress.total = 2 * await asyncio.to_thread(ctx.blobs.size, sha256)
        with ctx.blobs.open(sha256) as file:
            kind = kind_of(await asyncio.to_thread(file.read, 8))
    except NotFound as error:
        raise Invalid("missing_blobs", "the archive is not uploaded", missing=[sha256]) from error
    members, meter = StagedMembers(staging), Meter(LIMITS)
    reader = ImageArchiveReader(members, meter)
    await feed_file(ctx.blobs.path(sha256), inflated(kind, reader, meter), progress)
    return await asyncio.to_thread(_gathered, _Named(members.found, reader.links), members.found, staging)


class _Named:
    """Members by name, through the archive's own links."""

    def __init__(self, found: Mapping[str, StagedFile], links: Mapping[str, str]) -> None:
        self._found, self._links = found, links

    def __getitem__(self, name: str) -> StagedFile:
        file = self._found.get(self._links.get(name, name))
        if file is None:
            raise Invalid("image_malformed", f"the archive has no member {name[:200]!r}")
        return file


def _gathered(named: _Named, found: Mapping[str, StagedFile], staging: Staging) -> Gathered:
    def read(name: str) -> bytes:
        if named[name].size_bytes > MAX_DOCUMENT_BYTES:
            raise Invalid("image_malformed", f"{name[:200]} is too large for a document")
        return staging.read(named[name], MAX_DOCUMENT_BYTES)

    parts = find_parts(found, read)
    if len(parts.layers) > MAX_LAYERS:
        raise Invalid("image_too_large", f"over {MAX_LAYERS} layers")
    return Gathered(named[parts.config], [named[one] for one in parts.layers])
