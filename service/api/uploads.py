"""Uploaded deliverables on their way in: archives are read as they arrive, blobs are checked, then both are sealed alike."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import Request

from service.api import task_archives
from service.api.archive_slots import archive_slot
from service.api.archive_types import archive_kind
from service.api.state import ApiState
from service.archives.contract import ArchiveLimits
from service.domain.artifacts import Deliverable
from service.domain.errors import Invalid
from service.domain.paths import check_relative_path
from service.domain.tasks import TaskManifest
from service.lifecycle.uploads import Uploaded, described, manifest_bytes, placed
from service.store import blob_refs
from service.store.blobs import BlobStore
from service.store.database import Tx


@dataclass(frozen=True, slots=True)
class Sealing:
    """A deliverable whose bytes are all in the content store."""

    deliverable: Deliverable
    manifest: tuple[str, int]
    fresh: bool = False
    """Its files came with this request: the project had none of them before."""

    async def take(self, tx: Tx, project_id: str) -> None:
        """Keep its files from the collector until the caller's own refs are there. Raises Invalid ``missing_blobs``."""
        sizes = {e.sha256: e.size_bytes for e in self.deliverable.files if e.sha256 is not None}
        if self.fresh:
            await blob_refs.add_refs(tx, project_id, blob_refs.UPLOAD, project_id, sizes.items())
            return
        have = await blob_refs.project_sizes(tx, project_id, sizes, hold=True)
        _refuse_missing([sha for sha in sizes if sha not in have])


async def checked_files(tx: Tx, project_id: str, files: Mapping[str, str], given: int) -> list[Uploaded]:
    """Return the files (path → sha256) with their sizes; ``given``: how many the request named.

    Raises Invalid ``bad_upload`` (a path twice), ``missing_blobs``.
    """
    if len(files) != given:
        raise Invalid("bad_upload", "a path is named twice")
    sizes = await blob_refs.project_sizes(tx, project_id, files.values())
    _refuse_missing([sha for sha in files.values() if sha not in sizes])
    return [Uploaded(path, sha, sizes[sha]) for path, sha in files.items()]


def sealing(blobs: BlobStore, files: Sequence[Uploaded], task: TaskManifest, *, fresh: bool = False) -> Sealing:
    """Make the deliverable of files that are in the content store. Blocks. Raises Invalid."""
    deliverable = described(placed(files, task), blobs)
    return Sealing(deliverable, blobs.store_bytes(manifest_bytes(deliverable)), fresh)


@asynccontextmanager
async def received(request: Request, state: ApiState, task: TaskManifest) -> AsyncGenerator[Sealing]:
    """Read the request's archive into the content store. Raises Invalid, Unavailable."""
    kind = archive_kind(request.headers)
    assert kind is not None
    most = min(state.config.max_archive_bytes, task.limits.deliverable_bytes + (64 << 20))
    limits = ArchiveLimits(total_bytes=most, member_bytes=state.config.max_blob_bytes)
    with archive_slot(state), state.blobs.staging() as staging:
        found = await task_archives.receive(request.stream(), kind, limits, state.blobs, staging)
        files = [Uploaded(_clean(path), f.sha256, f.size_bytes) for path, f in found.items()]
        placed(files, task)  # refused before anything is kept
        await task_archives.in_thread(staging.keep, list(found.values()))
        yield await task_archives.in_thread(sealing, state.blobs, files, task, fresh=True)


def _clean(path: str) -> str:
    try:
        return check_relative_path(path)
    except ValueError as error:
        raise Invalid("bad_upload", f"{path[:200]!r}: {error}") from error


def _refuse_missing(digests: Sequence[str]) -> None:
    if digests:
        raise Invalid("missing_blobs", f"{len(digests)} blobs are to be uploaded first", missing=list(digests[:100]))
