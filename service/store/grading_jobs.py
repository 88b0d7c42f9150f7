"""Which gradings are due, and what moves them but a verdict: put off, cancelled, replayed.

Fair between projects: of equal priority each project's first one comes before any project's second.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, case, func, or_, select

from service.domain.grading_plans import GradingQueue
from service.domain.run_states import Outcome, Phase
from service.domain.verdicts import Verdict, VerdictState
from service.store import gradings as verdicts
from service.store import votes
from service.store.criteria import drop_all
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.notifications import GRADINGS
from service.store.phases import change_phase, notify
from service.store.rows_grading import DeadLetterRow
from service.store.tables import gradings, runs

WINDOW = 256
"""Gradings of a queue that are given jobs at once: what comes with a higher priority waits for no more than these."""
BATCH = 200
"""Most that one call cancels or replays."""
CANCELLED = "cancelled"
_OPEN = gradings.c.state.in_((VerdictState.PENDING, VerdictState.GRADING))
_FAILED = gradings.c.state == VerdictState.FAILED
_KEPT = (Outcome.CANCELLED, Outcome.INVALIDATED)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of a project's gradings; empty: any."""

    ids: Sequence[str] = ()
    causes: Sequence[str] = ()
    methods: Sequence[str] = ()
    plans: Sequence[str] = ()
    run_ids: Sequence[str] = ()
    regrade_ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Moved:
    count: int
    more: bool
    """There are others that one call does not reach."""


async def open_ids(tx: Tx, queue: GradingQueue | None = None, limit: int = WINDOW) -> list[str]:
    """Return what is due in the queue (default: in all that are not people's), at most ``limit``: begun ones, then by
    priority, then fairly between projects."""
    c = gradings.c
    ours = c.queue != "people" if queue is None else c.queue == queue
    begun = case((c.state == VerdictState.GRADING, 0), else_=1)
    place = func.row_number().over(partition_by=(c.project_id, begun), order_by=(c.priority.desc(), c.created_at, c.id))
    due = or_(c.not_before.is_(None), c.not_before <= func.clock_timestamp())
    found = select(c.id, c.priority, c.created_at, begun.label("begun"), place.label("place"))
    one = found.where(_OPEN, ours, due).subquery()
    order = (one.c.begun, one.c.priority.desc(), one.c.place, one.c.created_at, one.c.id)
    return [*(await tx.execute(select(one.c.id).order_by(*order).limit(limit))).scalars()]


async def put_off(tx: Tx, grading_id: str, cause: str, wait_s: float, patience_s: float) -> bool:
    """Have a grading that cannot be decided now wait ``wait_s`` seconds; False: ``patience_s`` since its first start are over.

    The start does not count as a try. One that has ended stays as it is.
    """
    c = gradings.c
    began = func.extract("epoch", func.clock_timestamp() - c.started_at)
    values = {
        "state": VerdictState.PENDING,
        "cause": cause,
        "tries": func.greatest(c.tries - 1, 0),
        "put_offs": c.put_offs + 1,
        "not_before": func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, wait_s),
    }
    waits = or_(c.started_at.is_(None), began <= patience_s)
    query = gradings.update().where(c.id == grading_id, _OPEN, waits).values(values)
    if (await tx.execute(query)).rowcount:
        return True
    still = select(c.id).where(c.id == grading_id, _OPEN)
    return (await tx.execute(still)).first() is None


async def over_of(tx: Tx, grading_ids: Sequence[str]) -> set[str]:
    """Return those of the gradings that have ended, or are no more."""
    c = gradings.c
    query = select(c.id).where(c.id.in_(list(grading_ids)), _OPEN)
    return set(grading_ids) - set((await tx.execute(query)).scalars())


async def dead_letter(tx: Tx, project_id: str) -> list[DeadLetterRow]:
    """Return what failed, by cause and method, most first."""
    c = gradings.c
    counts = (func.count().label("gradings"), func.count(c.run_id.distinct()).label("runs"))
    times = (func.min(c.graded_at).label("oldest_at"), func.max(c.graded_at).label("newest_at"))
    query = select(c.cause, c.method, *counts, *times).where(c.project_id == project_id, _FAILED)
    query = query.group_by(c.cause, c.method).order_by(counts[0].desc(), c.cause, c.method).limit(500)
    return [DeadLetterRow.of(row) for row in (await tx.execute(query)).mappings()]


async def cancel(tx: Tx, project_id: str, wanted: Wanted) -> Moved:
    """End open gradings as failed, cause ``cancelled``; what judges said so far stays."""
    rows, more = await _found(tx, project_id, wanted, _OPEN)
    for row in rows:
        await verdicts.finish(tx, row["id"], Verdict(VerdictState.FAILED, cause=CANCELLED))
    return Moved(len(rows), more)


async def replay(tx: Tx, project_id: str, wanted: Wanted) -> Moved:
    """Put failed gradings back into their queues. Votes stay, but for invalid ones, which are asked for anew.

    Cancelled ones come back only where their ids or this cause are named; those of runs that were cancelled, made void or
    have another deliverable now do not.
    """
    of_run = (runs.c.id == gradings.c.run_id, runs.c.deliverable_digest == gradings.c.deliverable_digest)
    live = or_(runs.c.outcome.is_(None), runs.c.outcome.not_in(_KEPT))
    conditions = [_FAILED, select(runs.c.id).where(*of_run, live).exists()]
    if not wanted.ids and not wanted.causes:
        conditions.append(gradings.c.cause != CANCELLED)
    rows, more = await _found(tx, project_id, wanted, *conditions)
    for row in rows:
        await _reopen(tx, row)
    ids = [row["id"] for row in rows]
    await votes.drop_invalid(tx, ids)
    await drop_all(tx, ids)
    return Moved(len(rows), more)


async def _found(
    tx: Tx, project_id: str, wanted: Wanted, *conditions: ColumnElement[bool]
) -> tuple[Sequence[RowMapping], bool]:
    """In the order of their runs, which is the order in which these are locked."""
    c = gradings.c
    pairs = ((c.id, wanted.ids), (c.cause, wanted.causes), (c.method, wanted.methods), (c.plan, wanted.plans),
             (c.run_id, wanted.run_ids), (c.regrade_id, wanted.regrade_ids))  # fmt: skip
    chosen = [column.in_(list(values)) for column, values in pairs if values]
    query = select(gradings).where(c.project_id == project_id, *chosen, *conditions)
    rows = (await tx.execute(query.order_by(c.run_id, c.id).limit(BATCH + 1))).mappings().all()
    return rows[:BATCH], len(rows) > BATCH


async def _reopen(tx: Tx, row: RowMapping) -> None:
    run = await lock_run(tx, row["run_id"])
    fresh: dict[str, Any] = dict.fromkeys(("score", "max_score", "cause", "started_at", "graded_at", "not_before"))
    values: dict[str, Any] = {**fresh, "state": VerdictState.PENDING, "tries": 0, "put_offs": 0, "detail": {}}
    await tx.execute(gradings.update().where(gradings.c.id == row["id"], _FAILED).values(values))
    await notify(tx, GRADINGS, f"{row['id']} {VerdictState.PENDING}")
    counts = row["primary"] and row["plan"] == run["plan"]
    if counts and run["phase"] == Phase.DONE and run["outcome"] == Outcome.UNGRADED:
        none = dict.fromkeys(("outcome", "score", "max_score", "graded_at"))
        await change_phase(tx, run, Phase.GRADING, verdict_state=VerdictState.PENDING, **none)
