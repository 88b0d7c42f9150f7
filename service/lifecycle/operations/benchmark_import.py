"""Operation ``benchmark_import``: a manifest that was uploaded as a blob becomes a benchmark."""

import asyncio
import json
import math
from functools import partial
from typing import Any, Never

from service.domain.errors import Invalid, NotFound, TooLarge
from service.domain.tasks import Sha256, Strict
from service.lifecycle import benchmark_making as making
from service.lifecycle.operations.contract import Job, OperationContext
from service.store.blobs import BlobStore
from service.store.database import Tx
from service.store.rows import BenchmarkRow

KIND = "benchmark_import"
MAX_MANIFEST_BYTES = 256 << 20


class ImportSpec(Strict):
    manifest_sha256: Sha256


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {benchmark_id, created}. Raises Invalid (invalid_manifest, missing_blobs …), Conflict, JobCancelled."""
    spec = ImportSpec.model_validate(job.spec)
    job.say("reading the manifest")
    await job.report(0, None)
    brought = await asyncio.to_thread(_read, ctx.blobs, spec.manifest_sha256)
    found = await ctx.in_transaction(partial(making.find_same, project_id=job.project_id, brought=brought))
    if found is not None:
        return _result(found, created=False)
    made = await _make_tasks(ctx, job, brought)
    conclude = partial(making.conclude, project_id=job.project_id, brought=brought, made=made)
    row, created = await ctx.in_transaction(conclude)
    return _result(row, created=created)


async def _make_tasks(ctx: OperationContext, job: Job, brought: making.Brought) -> list[making.Entry]:
    sizes = await ctx.in_transaction(partial(making.file_sizes, project_id=job.project_id, brought=brought))
    entries = await asyncio.to_thread(making.judged, brought, sizes)
    refused = sum(1 for (item, _), (was, _) in zip(entries, brought.entries, strict=True) if was.task and not item.task)
    job.say(f"{len(entries)} items" + (f", {refused} of them with a task that is refused here" if refused else ""))
    made: list[making.Entry] = []
    while len(made) < len(entries):
        await job.report(len(made), len(entries))
        some = entries[len(made) : len(made) + making.BATCH]

        async def make(tx: Tx, some: Any = some) -> Any:
            return await making.make_batch(tx, job.project_id, some)

        made += await ctx.in_transaction(make)
        ctx.crash.reach("import.batch_made")
    await job.report(len(made), len(entries))
    return made


def _result(row: BenchmarkRow, *, created: bool) -> dict[str, Any]:
    return {"benchmark_id": row.id, "created": created}


def _read(blobs: BlobStore, sha256: str) -> making.Brought:
    try:
        data = blobs.read_bytes(sha256, MAX_MANIFEST_BYTES)
    except NotFound as error:
        raise Invalid("missing_blobs", "the manifest is not uploaded", missing=[sha256]) from error
    except TooLarge as error:
        raise Invalid("manifest_too_large", f"a manifest has at most {MAX_MANIFEST_BYTES} bytes") from error
    return making.read(parse(data))


def parse(data: bytes) -> Any:
    """Parse a manifest's bytes. Raises Invalid("invalid_manifest") for what is not strict JSON."""
    try:
        return json.loads(data.decode(), parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise Invalid("invalid_manifest", f"the manifest is not JSON: {str(error)[:200]}") from error


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits[:20])


def _refuse(name: str) -> Never:
    raise ValueError(f"{name} is no number")
