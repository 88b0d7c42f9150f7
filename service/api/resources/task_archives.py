"""``POST /v1/tasks`` with an archive for a body: tar (plain, gzip, zstd, xz) or zip of a task directory."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api import task_archives
from service.api.archive_slots import archive_slot
from service.api.archive_types import PATH, ArchiveRoute, archive_kind
from service.api.auth import State, TasksWrite
from service.api.resources.tasks import created_answer
from service.archives.contract import ArchiveLimits
from service.graders import registry as graders
from service.store import blob_refs, tasks

router = APIRouter(tags=["tasks"], route_class=ArchiveRoute)


@router.post(PATH, include_in_schema=False)
async def create_task_from_archive(request: Request, caller: TasksWrite, state: State) -> Response:
    """Described with ``create_task``, of which this is the other content type."""
    kind = archive_kind(request.headers)
    assert kind is not None
    with archive_slot(state), state.blobs.staging() as staging:
        limits = ArchiveLimits(total_bytes=state.config.max_archive_bytes, member_bytes=state.config.max_blob_bytes)
        found = await task_archives.receive(request.stream(), kind, limits, state.blobs, staging)
        manifest, files = await task_archives.in_thread(task_archives.manifest_of, found, staging)
        for spec in manifest.graders:
            graders.check(spec, manifest)
        await task_archives.in_thread(staging.keep, files)
    async with state.db.transaction() as tx:
        sizes = [(file.sha256, file.size_bytes) for file in files]
        await blob_refs.add_refs(tx, caller.project_id, blob_refs.UPLOAD, caller.project_id, sizes)
        row, created = await tasks.create(tx, caller.project_id, manifest)
    return created_answer(row, caller, created=created)
