"""The operation's steps: fetch or unpack, look, keep; then hosts load it, and the first that has it ends the wait."""

import asyncio
from functools import partial
from typing import Any

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.images import ImageState
from service.domain.tasks import Strict
from service.lifecycle.operations.contract import Job, OperationContext
from service.lifecycle.operations.image_import.gathered import Gathered, Progress
from service.lifecycle.operations.image_import.registry import fetch
from service.lifecycle.operations.image_import.scan import scan
from service.lifecycle.operations.image_import.uploaded import unpack
from service.store import hosts, images
from service.store.database import Tx
from service.store.rows_models import ImageRow
from service.store.staging import Staging

KIND = "image_import"
HOSTS_S = 120.0
"""How long an import waits for a host to have the image; it is loaded later all the same."""
LOOK_S = 0.5


class ImportSpec(Strict):
    image_id: str


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {image_id, size_bytes, hosts}. Raises Invalid (image_… with the reason), NotFound, JobCancelled, Unavailable."""
    spec = ImportSpec.model_validate(job.spec)
    row = await _load(ctx, spec.image_id)
    if row.state is ImageState.PENDING:
        await _import(ctx, job, row)
        row = await _load(ctx, spec.image_id)
    if row.content is None:
        refused: dict[str, Any] = row.report.get("refused") or {}
        raise Invalid(str(refused.get("type", "image_refused")), str(refused.get("detail", "")))
    size = row.content.size_bytes
    found = await _hosts(ctx, job, row.id, size)
    await job.report(size, size)
    return {"image_id": row.id, "size_bytes": size, "hosts": found}


async def _load(ctx: OperationContext, image_id: str) -> ImageRow:
    row = await ctx.in_transaction(partial(images.load, image_id=image_id))
    if row is None:
        raise NotFound("image_not_found", "the image was deleted")
    return row


async def _import(ctx: OperationContext, job: Job, row: ImageRow) -> None:
    with ctx.blobs.staging() as staging:
        progress = Progress(job)
        try:
            gathered = await _gather(ctx, staging, row, progress)
            job.say(f"{len(gathered.layers)} layers came")
            content, report = await scan(staging, gathered, progress)
        except Invalid as error:
            report = {"refused": {"type": error.type, "detail": error.detail, **error.fields}}
            await ctx.in_transaction(partial(images.refuse, image_id=row.id, report=report))
            raise
        ctx.crash.reach("image.kept")

        async def keep(tx: Tx) -> bool:
            return await images.keep(tx, row.id, content, report)

        if not await ctx.in_transaction(keep):
            raise Conflict("image_deleted", "the image was deleted during its import")
    for line in report["overridden"]:
        job.say(line)


async def _gather(ctx: OperationContext, staging: Staging, row: ImageRow, progress: Progress) -> Gathered:
    if row.archive is not None:
        return await unpack(ctx, staging, row.archive, progress)
    return await fetch(ctx, staging, row, progress)


async def _hosts(ctx: OperationContext, job: Job, image_id: str, size: int) -> list[str]:
    """Wait for the first host that has it; return all that have. None where no host is up."""
    job.say("hosts load it")
    for _ in range(int(HOSTS_S / LOOK_S)):
        there = [one for one in await ctx.in_transaction(hosts.list) if one.state != "lost"]
        having = [one.id for one in there if image_id in one.environments]
        if having or not there:
            return having
        await job.report(size, None)
        await asyncio.sleep(LOOK_S)
    return []
