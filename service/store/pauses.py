"""Pauses of a person's run: its clock stands still, and its sandbox is frozen, while one is open.

The row is the truth, whichever worker holds the sandbox; the deadline moves by the pause when it ends. Times are the
database's.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, func, select, update

from service.domain.agents import Driver
from service.domain.errors import Conflict
from service.domain.run_states import AttemptState, Phase
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.phases import change_phase
from service.store.tables import attempts, runs
from service.store.tables_desktop import pauses

MOST = 100
"""Pauses of one attempt."""
MOST_TIME = timedelta(hours=72)
"""Of all pauses of one attempt together; then the clock goes on by itself."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The pauses of an attempt at one moment."""

    count: int = 0
    total_s: float = 0.0
    """An open one up to now."""
    since: datetime | None = None
    """Of the open one."""
    left_s: float = 0.0
    """Until the attempt's deadline, which does not come nearer during a pause."""


async def standing(tx: Tx, run_id: str, n: int) -> Standing:
    now = func.clock_timestamp()
    taken = func.coalesce(func.sum(_seconds(func.coalesce(pauses.c.ended_at, now) - pauses.c.created_at)), 0.0)
    opened = func.max(pauses.c.created_at).filter(pauses.c.ended_at.is_(None))
    of_attempt = (pauses.c.run_id == run_id, pauses.c.attempt == n)
    query = select(func.count().label("count"), taken.label("total_s"), opened.label("since")).where(*of_attempt)
    row = (await tx.execute(query)).mappings().one()
    until = select(_seconds(attempts.c.deadline_at - func.coalesce(row["since"], now)))
    left = (await tx.execute(until.where(attempts.c.run_id == run_id, attempts.c.n == n))).scalar_one_or_none()
    return Standing(row["count"], float(row["total_s"]), row["since"], float(left or 0.0))


async def begin(tx: Tx, run_id: str) -> None:
    """Pause the run; nothing to do where it is paused. The phase tells the worker, which freezes the sandbox.

    Raises NotFound, Conflict ``not_person``, ``run_not_running``, ``too_many_pauses``.
    """
    run = await lock_run(tx, run_id)
    if run["driver"] != Driver.PERSON:
        raise Conflict("not_person", f"the run is driven by its {run['driver']}: only a person's clock can stand still")
    if run["phase"] == Phase.PAUSED:
        return
    attempt = await _running(tx, run)
    if run["phase"] != Phase.RUNNING or attempt is None or run["stop_mode"] is not None:
        raise Conflict("run_not_running", f"the run is {run['phase']}: it can be paused while it is running")
    now = await standing(tx, run_id, attempt["n"])
    if now.count >= MOST or now.total_s >= MOST_TIME.total_seconds():
        raise Conflict("too_many_pauses", f"at most {MOST} pauses, and {MOST_TIME} of them")
    if now.left_s <= 0:
        raise Conflict("run_not_running", "the run's time is over")
    values = {"run_id": run_id, "attempt": attempt["n"], "n": now.count + 1, "project_id": run["project_id"]}
    await tx.execute(pauses.insert().values(**values, created_at=func.clock_timestamp()))
    await change_phase(tx, run, Phase.PAUSED)


async def end(tx: Tx, run_id: str) -> None:
    """Let the clock go on; the deadline moves by the pause. Nothing to do where no pause is open. Raises NotFound."""
    run = await lock_run(tx, run_id)
    if run["phase"] != Phase.PAUSED:
        return
    this = (pauses.c.run_id == run_id, pauses.c.attempt == run["attempt"], pauses.c.ended_at.is_(None))
    query = update(pauses).where(*this).values(ended_at=func.clock_timestamp())
    took = (await tx.execute(query.returning(pauses.c.ended_at - pauses.c.created_at))).scalar_one()
    moved = {"deadline_at": attempts.c.deadline_at + took}
    await tx.execute(update(attempts).where(attempts.c.run_id == run_id, attempts.c.n == run["attempt"]).values(moved))
    await change_phase(tx, run, Phase.RUNNING, deadline_at=runs.c.deadline_at + took)


async def _running(tx: Tx, run: RowMapping) -> RowMapping | None:
    this = (attempts.c.run_id == run["id"], attempts.c.n == run["attempt"], attempts.c.state == AttemptState.RUNNING)
    return (await tx.execute(select(attempts).where(*this))).mappings().one_or_none()


def _seconds(interval: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.extract("epoch", interval)
