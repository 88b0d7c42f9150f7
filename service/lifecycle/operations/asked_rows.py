"""An operation that asks a survey's questions: progress, cancellation, and how the set ends."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from service.domain.errors import NotFound, Unavailable
from service.domain.surveys import SurveyState
from service.lifecycle.operations.contract import Job, JobCancelled, OperationContext
from service.lifecycle.surveys.control import Survey
from service.store.database import Tx
from service.store.surveys import Surveys

R = TypeVar("R", bound=Survey)
CALLS = 16
"""Of one operation at once."""
LOOK_EVERY_S = 0.5


async def taken_up(tx: Tx, job: Job, rows: Surveys[R]) -> R:
    """Return the operation's set; one that this very operation stopped, in a try before, runs again. Raises NotFound."""
    row = await rows.get(tx, job.project_id, str(job.spec["set_id"]))
    if row is None:
        raise NotFound("not_found", "the set is gone")
    if row.state is SurveyState.STOPPED and row.operation_id == job.id:
        return await rows.change(tx, row.id, state=SurveyState.RUNNING, stopped_because=None, ended_at=None)
    return row


async def worked(
    ctx: OperationContext, job: Job, rows: Surveys[Any], asking: Coroutine[Any, Any, list[str]],
    progress: Callable[[], tuple[int, int]], close: Callable[[], Awaitable[None]],
) -> list[str]:  # fmt: skip
    """Let ``asking`` work and tell how far it is; return who was away. Whatever breaks it off ends the set as well.

    Raises JobCancelled, Unavailable.
    """
    end = partial(rows.end, set_id=str(job.spec["set_id"]), operation_id=job.id)
    try:
        return await _watched(job, asking, progress)
    except JobCancelled:
        await ctx.in_transaction(partial(end, state=SurveyState.CANCELLED))
        raise
    except Unavailable as error:
        await ctx.in_transaction(partial(end, state=SurveyState.STOPPED, because=error.type))
        raise
    finally:
        await close()


async def _watched(
    job: Job, asking: Coroutine[Any, Any, list[str]], progress: Callable[[], tuple[int, int]]
) -> list[str]:
    """Let them work, tell how far they are, and end them where somebody wants that."""
    work = asyncio.create_task(asking, name="survey")
    try:
        while not (await asyncio.wait({work}, timeout=LOOK_EVERY_S))[0]:
            await job.report(*progress())
        away = await work
        await job.report(*progress())
        return away
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
