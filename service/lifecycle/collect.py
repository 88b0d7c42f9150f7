"""Step *collect*: from ``ended`` to ``collected``. Called by workers.host; next: release.

The engine's word that everything inside is dead comes first, always. Then the workspace is walked into the content
store, and one transaction seals it: manifest, artifacts, refs, events, gradings, or the run's end.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import structlog

from service.domain.artifacts import Deliverable, EntryKind
from service.domain.events import EventType, NewEvent
from service.domain.run_states import AttemptState, EndedBecause, Flag, gradeable
from service.lifecycle.context import Context
from service.lifecycle.failure import fail_attempt
from service.lifecycle.keeping import keep
from service.lifecycle.raw_log import SealedLog
from service.lifecycle.sealing import follow_up
from service.lifecycle.work import Work, load_work
from service.sandboxes.contract import STREAMS, Sandbox, SandboxGone
from service.store import artifacts, attempts, blob_refs, runs
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Sealed:
    """What collection found, durable in the content store, not yet in the database."""

    cause: EndedBecause
    logs: dict[str, SealedLog]
    deliverable: Deliverable | None
    """None where the ending is not gradeable."""
    manifest: tuple[str, int] | None
    """Digest and size of the manifest's blob."""


async def collect(ctx: Context, attempt: AttemptRow) -> None:
    """Kill, seal the logs and the deliverable, queue its gradings.

    Raises FenceLost, Unavailable, EngineError and OSError (engine or workspace not to be had now: the step is repeated).
    """
    work = await load_work(ctx, attempt)
    cause = attempt.ended_because
    assert cause is not None
    await keep(ctx, attempt, work)
    try:
        deliverable = await _kill_and_walk(ctx, attempt, work, wanted=gradeable(cause))
    except SandboxGone as error:
        evidence = {"container": "gone", "engine_error": error.detail or error.type}
        await fail_attempt(ctx, attempt, EndedBecause.SANDBOX_LOST, evidence)
        return
    logs = await asyncio.to_thread(_seal_logs, ctx, attempt)
    manifest = None
    if deliverable is not None:
        cause = _judge(cause, deliverable, work)
        manifest = await asyncio.to_thread(ctx.blobs.store_bytes, json.dumps(deliverable.manifest()).encode())
    sealed = Sealed(cause, logs, deliverable, manifest)

    async def store(tx: Tx) -> None:
        await _store(ctx, tx, attempt, work, sealed)

    await retrying(ctx.db, store, ctx.timing.database_patience_s)
    ctx.crash.reach("collect.sealed")


async def _kill_and_walk(ctx: Context, attempt: AttemptRow, work: Work, *, wanted: bool) -> Deliverable | None:
    if attempt.sandbox_id is None:  # cancelled before there was one
        return None
    try:
        sandbox: Sandbox = await ctx.sandboxes.open(attempt.sandbox_id)
        await sandbox.kill()
    except SandboxGone:
        if wanted:
            raise
        return None
    ctx.crash.reach("collect.killed")
    return await _walk(ctx, sandbox, work) if wanted else None


async def _walk(ctx: Context, sandbox: Sandbox, work: Work) -> Deliverable:
    """Store the files of all roots together: one by one they would wait for the disk ten thousand times."""
    with ctx.blobs.staging() as staging:
        deliverable = await sandbox.collect(work.task.collect, work.run.limits, staging)
        await asyncio.to_thread(staging.keep_all)
    return deliverable


def _seal_logs(ctx: Context, attempt: AttemptRow) -> dict[str, SealedLog]:
    spool = ctx.spool(attempt)
    return {s: spool.seal(s, attempt.offsets[s], ctx.blobs) for s in STREAMS if attempt.offsets.get(s)}


def _judge(cause: EndedBecause, deliverable: Deliverable, work: Work) -> EndedBecause:
    """Let the sealed deliverable correct ``completed``, and only that."""
    if deliverable.refused is not None:
        return EndedBecause.COLLECTION_REFUSED
    if cause is not EndedBecause.COMPLETED:
        return cause
    if deliverable.truncated:
        return EndedBecause.OUTPUT_LIMIT
    files = {e.path for e in deliverable.files}
    required = work.manifest.outcome.require_files
    return cause if files.issuperset(required) else EndedBecause.SCAFFOLD_ERROR


async def _store(ctx: Context, tx: Tx, attempt: AttemptRow, work: Work, sealed: Sealed) -> None:
    run_id, project_id = attempt.run_id, work.run.project_id
    records = {s: _log_record(attempt, s, sealed.logs.get(s)) for s in STREAMS}
    moved = await attempts.advance(tx, attempt, AttemptState.COLLECTED, ended_because=sealed.cause, logs=records)
    logs = [(found.sha256, found.blob_bytes) for found in sealed.logs.values()]
    await blob_refs.add_refs(tx, project_id, "log", run_id, logs)
    await ctx.log.append(tx, run_id, attempt.n, moved.fence, _events(ctx, records, sealed))
    columns: dict[str, Any] = {"ended_because": sealed.cause}
    if sealed.deliverable is not None and sealed.manifest is not None:
        columns |= _columns(sealed.deliverable)
        await artifacts.insert_all(tx, run_id, sealed.deliverable)
        await blob_refs.add_refs(tx, project_id, "run", run_id, [sealed.manifest])
        await runs.add_flags(tx, run_id, _flags(sealed))
    await runs.update(tx, run_id, **columns)
    await follow_up(tx, run_id, work.task, sealed.cause)


def _columns(deliverable: Deliverable) -> dict[str, Any]:
    return {
        "deliverable_digest": deliverable.digest(),
        "deliverable_files": len(deliverable.files),
        "deliverable_bytes": deliverable.total_bytes,
        "deliverable_problems": deliverable.problems,
    }


def _log_record(attempt: AttemptRow, stream: str, sealed: SealedLog | None) -> dict[str, Any]:
    total = attempt.offsets.get(stream, 0)
    return {
        "bytes": total,
        "log_bytes": sealed.log_bytes if sealed else 0,
        "sha256": sealed.sha256 if sealed else None,
    }


def _events(ctx: Context, records: dict[str, dict[str, Any]], sealed: Sealed) -> list[NewEvent]:
    now = ctx.clock.now()
    events = [
        NewEvent(
            EventType.OUTPUT_CLOSED,
            {
                "stream": stream,
                "total_bytes": record["bytes"],
                "log_bytes": record["log_bytes"],
                "log_sha256": record["sha256"],
            },
            f"{stream}.closed",
            0,
            now,
        )
        for stream, record in records.items()
    ]
    if sealed.deliverable is not None and sealed.manifest is not None:
        found = sealed.deliverable
        payload = {
            "digest": found.digest(),
            "manifest_sha256": sealed.manifest[0],
            "files": len(found.files),
            "bytes": found.total_bytes,
            "problems": found.problems,
            "truncated": found.truncated,
            "refused": found.refused,
        }
        events.append(NewEvent(EventType.DELIVERABLE, payload, "deliverable", 0, now))
    return events


def _flags(sealed: Sealed) -> list[Flag]:
    found = sealed.deliverable
    assert found is not None
    if not found.files:
        return [Flag.NO_DELIVERABLE]
    cut = found.truncated or any(e.kind is EntryKind.OVER_LIMIT for e in found.entries)
    return [Flag.PARTIAL_OUTPUT] if cut or sealed.cause is not EndedBecause.COMPLETED else []
