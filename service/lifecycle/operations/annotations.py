"""Operation ``annotations``: the annotators of a set are asked for what is missing (NEEDS A18).

Each vote is recorded as it comes, so that a start after a crash goes on with the rest. A provider's outage is waited for.
"""

from functools import partial
from typing import Any

from service.domain.errors import Unavailable
from service.domain.surveys import SurveyState
from service.lifecycle.annotations.asking import Asking
from service.lifecycle.annotations.showing import Showing
from service.lifecycle.annotations.wording import template
from service.lifecycle.batch_writer import BatchWriter
from service.lifecycle.judge_calls import JudgeCalls
from service.lifecycle.judge_turns import Turns
from service.lifecycle.operations.asked_rows import CALLS, taken_up, worked
from service.lifecycle.operations.contract import Job, OperationContext
from service.lifecycle.surveys.lanes import Rest
from service.store import annotations
from service.store.annotations import Key, NewAnnotation, SetTarget
from service.store.database import Tx
from service.store.rows_annotations import AnnotationSetRow

AWAY = "annotator_away"
REST = Rest()


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {set_id, answered, refused, unreadable, excluded, failed, away: [annotator]}.

    Raises NotFound, Unavailable (``gateway_unavailable``, database or store away for long), JobCancelled.
    """
    if ctx.gateway is None:
        raise Unavailable("gateway_unavailable", "this installation has no gateway")
    row, targets, recorded = await ctx.in_transaction(partial(_load, job=job))
    calls = JudgeCalls(ctx.db, ctx.gateway, Turns(CALLS), database_patience_s=ctx.database_patience_s)
    writer = BatchWriter[NewAnnotation, bool](ctx.db, ctx.blobs, annotations.put, ctx.database_patience_s)
    showing = Showing(ctx.db, ctx.blobs, row.project_id, row.about, ctx.database_patience_s)
    done = min(row.total, row.asked)
    asking = Asking(calls, writer, row, template(row.template), showing, ctx.crash, REST, done)

    async def close() -> None:
        await writer.settle()
        await calls.close()

    work = asking.run(targets, recorded)
    away = await worked(ctx, job, annotations.SETS, work, lambda: (asking.done, row.total), close)
    return await ctx.in_transaction(partial(_end, job=job, away=away))


async def _load(tx: Tx, *, job: Job) -> tuple[AnnotationSetRow, list[SetTarget], set[Key]]:
    row = await taken_up(tx, job, annotations.SETS)
    return row, await annotations.targets_of(tx, row.id), await annotations.keys(tx, row.id)


async def _end(tx: Tx, *, job: Job, away: list[str]) -> dict[str, Any]:
    set_id = str(job.spec["set_id"])
    row = await annotations.SETS.get(tx, job.project_id, set_id, lock=True)
    assert row is not None
    if row.accepted_at is None:
        await annotations.settle_all(tx, row)
    state = SurveyState.STOPPED if away else SurveyState.DONE
    await annotations.SETS.end(tx, set_id, job.id, state, AWAY if away else None)
    counts = {name: getattr(row, name) for name in ("answered", "refused", "unreadable", "excluded", "failed")}
    return {"set_id": set_id, **counts, "away": away}
