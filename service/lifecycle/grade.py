"""Step *grade*: a queued grading becomes a verdict, and with the last one the run is ``done``.

Called by workers.grader. A grader's fault is a failed verdict with a cause, after its retries; never a score.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO

import structlog

from service.domain.artifacts import ArtifactEntry
from service.domain.errors import NotFound
from service.domain.integrity import IntegrityReport
from service.domain.tasks import TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders.contract import Grader, GraderBusy, GraderFault, GradingInput
from service.graders.registry import grader_for
from service.lifecycle.crash_points import CrashPoints
from service.lifecycle.integrity import ReportContext, entries_of, report_for_run
from service.sandboxes.rooms import Rooms
from service.store import gradings, runs, tasks
from service.store.blobs import BlobStore
from service.store.database import Database, Tx, retrying
from service.store.rows import GradingRow

MAX_STARTS = 10
"""Starts of one grading, over all processes, after which it is taken to kill its grader."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class GradeContext:
    db: Database
    blobs: BlobStore
    crash: CrashPoints = field(default_factory=CrashPoints)
    tries: int = 3
    """Of one start, where the method says that it is worth it."""
    first_pause_s: float = 1.0
    database_patience_s: float = 600.0
    rooms: Rooms | None = None
    """Null where this machine has no engine: methods that need one then answer ``grader_unavailable``."""

    @property
    def for_report(self) -> ReportContext:
        return ReportContext(self.db, self.blobs, self.rooms, self.database_patience_s)


async def grade(ctx: GradeContext, grading_id: str) -> None:
    """Decide one grading; nothing happens if it has ended. Raises Unavailable (database away for long)."""

    async def start(tx: Tx) -> GradingRow | None:
        return await gradings.claim_start(tx, grading_id)

    row = await retrying(ctx.db, start, ctx.database_patience_s)
    if row is None:
        return
    ctx.crash.reach("grade.started")
    report = await report_for_run(ctx.for_report, row.project_id, row.run_id, row.deliverable_digest)
    verdict = await _verdict(ctx, row, report)
    ctx.crash.reach("grade.decided")

    async def finish(tx: Tx) -> None:
        await gradings.finish(tx, grading_id, verdict)

    await retrying(ctx.db, finish, ctx.database_patience_s)


async def _verdict(ctx: GradeContext, row: GradingRow, report: IntegrityReport | None) -> Verdict:
    grader = grader_for(row.method)
    if grader is None or grader.version != row.method_version:
        return _failed("grader_unavailable")
    if row.tries > MAX_STARTS:
        return _failed("grader_crashed")
    pause = ctx.first_pause_s
    for left in reversed(range(ctx.tries)):
        try:
            return await _attempt(ctx, row, grader, report)
        except GraderFault as error:
            log.warning("grader_fault", grading=row.id, cause=error.type, detail=error.detail)
            return _failed(error.type)
        except (GraderBusy, OSError) as error:
            log.warning("grader_retry", grading=row.id, left=left, error=str(error))
            cause = error.type if isinstance(error, GraderBusy) else "grader_io_error"
        except Exception:  # a plug-in's own bug must end as a failed verdict, not as a stuck run
            log.exception("grader_bug", grading=row.id, left=left)
            cause = "grader_error"
        if left == 0:
            return _failed(cause)
        await asyncio.sleep(pause)
        pause *= 2
    return _failed("grader_error")


def _failed(cause: str) -> Verdict:
    return Verdict(VerdictState.FAILED, cause=cause)


async def _attempt(ctx: GradeContext, row: GradingRow, grader: Grader, report: IntegrityReport | None) -> Verdict:
    async def read(tx: Tx) -> tuple[TaskManifest, list[ArtifactEntry]]:
        return await _read(tx, row)

    task, entries = await retrying(ctx.db, read, ctx.database_patience_s)
    hidden = {f.path: f.sha256 for f in task.hidden}
    given = GradingInput(
        settings=row.settings,
        entries=entries,
        open_hidden=partial(_open_hidden, ctx.blobs, hidden),
        open_deliverable=partial(_open_deliverable, ctx.blobs),
        integrity=report,
        rooms=ctx.rooms,
    )
    return await grader.grade(given)


async def _read(tx: Tx, row: GradingRow) -> tuple[TaskManifest, list[ArtifactEntry]]:
    run = await runs.load(tx, row.run_id)
    task = await tasks.get(tx, row.project_id, run.task_id)
    if task is None or run.deliverable_digest != row.deliverable_digest:
        raise GraderFault("deliverable_changed", "the grading is of another deliverable than the run's")
    return task.manifest, await entries_of(tx, row.run_id)


def _open_hidden(blobs: BlobStore, hidden: dict[str, str], path: str) -> BinaryIO:
    if path not in hidden:
        raise GraderFault("hidden_missing", f"the task has no hidden file {path!r}")
    return _open(blobs, hidden[path], "hidden_missing")


def _open_deliverable(blobs: BlobStore, entry: ArtifactEntry) -> BinaryIO:
    if entry.sha256 is None:
        raise GraderFault("deliverable_missing", f"{entry.path!r} was not sealed")
    return _open(blobs, entry.sha256, "deliverable_missing")


def _open(blobs: BlobStore, digest: str, cause: str) -> BinaryIO:
    try:
        return blobs.open(digest)
    except NotFound as error:
        raise GraderFault(cause, f"the content store has no {digest}") from error
