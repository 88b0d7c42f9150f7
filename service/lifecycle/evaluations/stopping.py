"""A person ends an evaluation: what has not begun is cancelled, what runs ends as asked (NEEDS B17).

In many short transactions: each run that ends touches the evaluation's row, and none shall wait for thousands of others. A
stop that broke off is finished by asking again; until then nobody claims its runs, for the evaluation is stopped already.
"""

from typing import Literal

from service.domain.errors import NotFound
from service.domain.evaluations import EvaluationState
from service.domain.run_states import StopMode
from service.lifecycle.evaluations.missing import STARTED
from service.lifecycle.evaluations.recalling import check_state
from service.lifecycle.stop import stop as stop_run
from service.store import clock as database_clock
from service.store import operations, run_batches
from service.store.database import Database, Tx
from service.store.evaluations import evaluations, slots
from service.store.rows_evaluations import EvaluationRow

EvaluationStop = Literal["finish", "collect", "discard", "queued"]
"""``queued``: what runs goes on to its own end; the others as for a run."""
_CANCELLED_AT_ONCE = 200
_STOPPED_AT_ONCE = 20


async def stop(
    db: Database, project_id: str, evaluation_id: str, mode: EvaluationStop, actor: str
) -> tuple[EvaluationRow, dict[str, int]]:
    """Stop it; return it and how many runs were cancelled and asked to end. May be repeated.

    One whose preflight is under way is a draft again. Raises NotFound, Conflict ``evaluation_state``.
    """
    async with db.transaction() as tx:
        row = await _mark(tx, project_id, evaluation_id, mode, actor)
    if row.state is not EvaluationState.STOPPED:
        return row, {"cancelled": 0, "stopping": 0}
    done = {"cancelled": await _cancel_waiting(db, row), "stopping": 0}
    if mode != "queued":
        done["stopping"] = await _stop_live(db, row, StopMode(mode))
    async with db.transaction() as tx:
        await evaluations.note(tx, row.id, actor, "stopped", {"mode": mode, **done})
        found = await evaluations.get(tx, project_id, evaluation_id)
    return found or row, done


async def _mark(tx: Tx, project_id: str, evaluation_id: str, mode: EvaluationStop, actor: str) -> EvaluationRow:
    await evaluations.turn(tx, evaluation_id)
    row = await evaluations.get(tx, project_id, evaluation_id)
    if row is None:
        raise NotFound("not_found")
    if row.state is EvaluationState.CHECKING:
        operation_id = (row.preflight or {}).get("operation_id")
        if operation_id is not None:
            await operations.request_cancel(tx, project_id, operation_id)
        await evaluations.note(tx, row.id, actor, "stop", {"mode": mode})
        return await evaluations.change(tx, row.id, state=EvaluationState.DRAFT)
    check_state(row, STARTED)
    if row.state is EvaluationState.DONE:
        return row
    await evaluations.note(tx, row.id, actor, "stop", {"mode": mode})
    ended_at = row.ended_at or await database_clock.now(tx)
    return await evaluations.change(tx, row.id, state=EvaluationState.STOPPED, ended_at=ended_at)


async def _cancel_waiting(db: Database, row: EvaluationRow) -> int:
    total = 0
    while True:
        async with db.transaction() as tx:
            n = await run_batches.cancel_waiting(tx, row.project_id, row.id, _CANCELLED_AT_ONCE)
        total += n
        if n < _CANCELLED_AT_ONCE:
            return total


async def _stop_live(db: Database, row: EvaluationRow, mode: StopMode) -> int:
    total, after = 0, ""
    while True:
        async with db.transaction() as tx:
            found = await slots.at_work(tx, row.id, after, _STOPPED_AT_ONCE)
            for run_id in found:
                await stop_run(tx, row.project_id, run_id, mode)
        total += len(found)
        if len(found) < _STOPPED_AT_ONCE:
            return total
        after = found[-1]
