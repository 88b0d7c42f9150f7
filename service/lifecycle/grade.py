"""Step *grade*: a queued grading becomes a verdict, and with the last one the run is ``done``.

Called by workers.grader. Who cannot decide now (a judge is away, no room comes free) has the grading put off, and it takes
nobody's place meanwhile; what a repetition will not cure is a failed verdict with a cause. Neither is ever a score.
"""

import asyncio
import random
import time
from dataclasses import dataclass, replace

import structlog

from service.domain.errors import Unavailable
from service.domain.integrity import IntegrityReport
from service.domain.verdicts import Verdict, VerdictState
from service.graders.contract import INTEGRITY_UNAVAILABLE, Grader, GraderBusy, GraderFault
from service.graders.registry import grader_for
from service.lifecycle.grading_context import GradeContext
from service.lifecycle.grading_input import input_of
from service.lifecycle.integrity import report_for_run
from service.store import grading_jobs, gradings, integrity
from service.store.database import Tx, retrying
from service.store.rows import GradingRow

__all__ = ["GradeContext", "grade"]

MAX_STARTS = 10
"""Starts of one grading that ended in a crash, over all processes, after which it is taken to kill its grader."""
_LOCK_PAUSE_S = 1.0
SEED = "order_seed"
"""Of a verdict's detail: what orders, control statements and sides of its votes were drawn from."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PutOff:
    """Nobody can decide now."""

    cause: str


async def grade(ctx: GradeContext, grading_id: str) -> None:
    """Decide one grading, unless it has ended, is not due, or another process is at it; put it off if it must wait.

    Raises Unavailable (database away for long).
    """
    deadline = time.monotonic() + ctx.database_patience_s
    while True:
        try:
            async with ctx.locks.hold(f"workstead.grading.{grading_id}") as mine:
                if mine:
                    await _grade(ctx, grading_id)
                return
        except Unavailable:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(_LOCK_PAUSE_S)


async def _grade(ctx: GradeContext, grading_id: str) -> None:
    async def start(tx: Tx) -> GradingRow | None:
        return await gradings.claim_start(tx, grading_id)

    row = await retrying(ctx.db, start, ctx.database_patience_s)
    if row is None:
        return
    ctx.crash.reach("grade.started")
    said = await ctx.underway.work(grading_id, _decide(ctx, row))
    ctx.crash.reach("grade.decided")
    if isinstance(said, PutOff):
        said = await _put_off(ctx, row, said)
    if said is not None:
        await _finish(ctx, grading_id, said)


async def _finish(ctx: GradeContext, grading_id: str, verdict: Verdict) -> None:
    async def finish(tx: Tx) -> None:
        await gradings.finish(tx, grading_id, verdict)

    await retrying(ctx.db, finish, ctx.database_patience_s)


async def _put_off(ctx: GradeContext, row: GradingRow, said: PutOff) -> Verdict | None:
    """Return the verdict of one that has waited long enough; null: it waits."""
    patience = ctx.patience
    longest = min(patience.longest_s, patience.first_s * 2 ** min(row.put_offs, 30))
    wait_s = longest * random.uniform(0.8, 1.2)  # noqa: S311 - jitter, not a secret

    async def wait(tx: Tx) -> bool:
        if said.cause == INTEGRITY_UNAVAILABLE:  # whoever asks again wants it made again
            await integrity.request(tx, row.project_id, row.deliverable_digest, queued=False)
        return await grading_jobs.put_off(tx, row.id, said.cause, wait_s, patience.in_all_s)

    waits = await retrying(ctx.db, wait, ctx.database_patience_s)
    log.warning("grading_put_off", grading=row.id, cause=said.cause, wait_s=round(wait_s, 1), given_up=not waits)
    return None if waits else _failed(said.cause)


async def _decide(ctx: GradeContext, row: GradingRow) -> Verdict | PutOff:
    grader = grader_for(row.method)
    if grader is None or grader.version != row.method_version:
        return _failed("grader_unavailable")
    if row.tries > MAX_STARTS:
        return _failed("grader_crashed")
    report = await report_for_run(ctx.for_report, row.project_id, row.run_id, row.deliverable_digest)
    pause = ctx.first_pause_s
    for left in reversed(range(ctx.tries)):
        said = await _attempt(ctx, row, grader, report)
        if not isinstance(said, _Again):
            return said
        log.warning("grader_retry", grading=row.id, left=left, cause=said.last)
        if left == 0:
            return said.then
        await asyncio.sleep(pause)
        pause *= 2
    raise AssertionError("tries is at least 1")


@dataclass(frozen=True, slots=True)
class _Again:
    """Worth another try at once; ``then`` is what it means where that was the last one."""

    then: Verdict | PutOff
    last: str


async def _attempt(
    ctx: GradeContext, row: GradingRow, grader: Grader, report: IntegrityReport | None
) -> Verdict | PutOff | _Again:
    try:
        given = await input_of(ctx, row, report)
        verdict = await grader.grade(given)
        # Whoever asks the judges again asks in the same orders.
        return replace(verdict, detail={**verdict.detail, SEED: given.seed}) if grader.queue == "judges" else verdict
    except GraderFault as error:
        log.warning("grader_fault", grading=row.id, cause=error.type, detail=error.detail)
        return _failed(error.type)
    except GraderBusy as error:
        log.warning("grader_busy", grading=row.id, cause=error.type, detail=error.detail)
        return PutOff(error.type)
    except Unavailable as error:
        if error.type == "database_unavailable":
            raise
        return PutOff(error.type)
    except OSError as error:
        return _Again(PutOff("grader_io_error"), str(error))
    except Exception:  # a plug-in's own bug must end as a failed verdict, not as a stuck run
        log.exception("grader_bug", grading=row.id)
        return _Again(_failed("grader_error"), "grader_error")


def _failed(cause: str) -> Verdict:
    return Verdict(VerdictState.FAILED, cause=cause)
