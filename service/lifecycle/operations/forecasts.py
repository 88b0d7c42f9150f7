"""Operation ``forecasts``: the forecasters of a set are asked for what is missing (NEEDS A25).

Each forecast is recorded as it comes, so that a start after a crash goes on with the rest. A provider's outage is waited for.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from service.domain.errors import NotFound, Unavailable
from service.domain.forecasts import ForecastSetState
from service.lifecycle.batch_writer import BatchWriter
from service.lifecycle.forecasts.asking import Asking, Rest
from service.lifecycle.forecasts.wording import template
from service.lifecycle.judge_calls import JudgeCalls
from service.lifecycle.judge_turns import Turns
from service.lifecycle.operations.contract import Job, JobCancelled, OperationContext
from service.store import forecasts
from service.store.database import Tx
from service.store.forecasts import Key, NewForecast
from service.store.rows_forecasts import ForecastSetRow

CALLS = 16
LOOK_EVERY_S = 0.5
AWAY = "forecaster_away"
REST = Rest()


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {set_id, ok, excluded, failed, away: [forecaster]}.

    Raises NotFound, Unavailable (``gateway_unavailable``, database or store away for long), JobCancelled.
    """
    if ctx.gateway is None:
        raise Unavailable("gateway_unavailable", "this installation has no gateway")
    row, tasks, recorded = await ctx.in_transaction(partial(_load, job=job))
    calls = JudgeCalls(ctx.db, ctx.gateway, Turns(CALLS), database_patience_s=ctx.database_patience_s)
    writer = BatchWriter[NewForecast, bool](ctx.db, ctx.blobs, forecasts.put, ctx.database_patience_s)
    asking = Asking(
        ctx.db, calls, writer, row, template(row.template), ctx.crash, REST, ctx.database_patience_s,
        done=min(row.total, row.asked),
    )  # fmt: skip
    end = partial(forecasts.end, set_id=row.id, operation_id=job.id)
    try:
        away = await _watched(job, asking, tasks, recorded)
    except JobCancelled:
        await ctx.in_transaction(partial(end, state=ForecastSetState.CANCELLED))
        raise
    except Unavailable as error:
        await ctx.in_transaction(partial(end, state=ForecastSetState.STOPPED, because=error.type))
        raise
    finally:
        await writer.settle()
        await calls.close()
    return await ctx.in_transaction(partial(_end, job=job, away=away))


async def _watched(job: Job, asking: Asking, tasks: Sequence[str], recorded: set[Key]) -> list[str]:
    """Let them work, tell how far they are, and end them where somebody wants that."""
    work = asyncio.create_task(asking.run(tasks, recorded), name="forecasts")
    try:
        while not (await asyncio.wait({work}, timeout=LOOK_EVERY_S))[0]:
            await job.report(asking.done, asking.row.total)
        away = await work
        await job.report(asking.done, asking.row.total)
        return away
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def _load(tx: Tx, *, job: Job) -> tuple[ForecastSetRow, list[str], set[Key]]:
    row = await forecasts.get(tx, job.project_id, str(job.spec["set_id"]))
    if row is None:
        raise NotFound("not_found", "the set is gone")
    if row.state is ForecastSetState.STOPPED and row.operation_id == job.id:
        row = await forecasts.change(tx, row.id, state=ForecastSetState.RUNNING, stopped_because=None, ended_at=None)
    return row, [one.task_id for one in await forecasts.tasks_of(tx, row.id)], await forecasts.keys(tx, row.id)


async def _end(tx: Tx, *, job: Job, away: list[str]) -> dict[str, Any]:
    set_id = str(job.spec["set_id"])
    state = ForecastSetState.STOPPED if away else ForecastSetState.DONE
    await forecasts.end(tx, set_id, job.id, state, AWAY if away else None)
    row = await forecasts.get(tx, job.project_id, set_id)
    assert row is not None
    return {"set_id": set_id, "ok": row.ok, "excluded": row.excluded, "failed": row.failed, "away": away}
