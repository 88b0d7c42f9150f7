"""Operation ``forecasts``: the forecasters of a set are asked for what is missing (NEEDS A25).

Each forecast is recorded as it comes, so that a start after a crash goes on with the rest. A provider's outage is waited for.
"""

from functools import partial
from typing import Any

from service.domain.errors import Unavailable
from service.domain.surveys import SurveyState
from service.lifecycle.batch_writer import BatchWriter
from service.lifecycle.forecasts.asking import Asking
from service.lifecycle.forecasts.wording import template
from service.lifecycle.judge_calls import JudgeCalls
from service.lifecycle.judge_turns import Turns
from service.lifecycle.operations.asked_rows import CALLS, taken_up, worked
from service.lifecycle.operations.contract import Job, OperationContext
from service.lifecycle.surveys.lanes import Rest
from service.store import forecasts
from service.store.database import Tx
from service.store.forecasts import Key, NewForecast
from service.store.rows_forecasts import ForecastSetRow

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

    async def close() -> None:
        await writer.settle()
        await calls.close()

    work = asking.run(tasks, recorded)
    away = await worked(ctx, job, forecasts.SETS, work, lambda: (asking.done, row.total), close)
    return await ctx.in_transaction(partial(_end, job=job, away=away))


async def _load(tx: Tx, *, job: Job) -> tuple[ForecastSetRow, list[str], set[Key]]:
    row = await taken_up(tx, job, forecasts.SETS)
    return row, [one.task_id for one in await forecasts.tasks_of(tx, row.id)], await forecasts.keys(tx, row.id)


async def _end(tx: Tx, *, job: Job, away: list[str]) -> dict[str, Any]:
    set_id = str(job.spec["set_id"])
    state = SurveyState.STOPPED if away else SurveyState.DONE
    await forecasts.end(tx, set_id, job.id, state, AWAY if away else None)
    row = await forecasts.get(tx, job.project_id, set_id)
    assert row is not None
    return {"set_id": set_id, "ok": row.ok, "excluded": row.excluded, "failed": row.failed, "away": away}
