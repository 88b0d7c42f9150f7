"""Runs made void, and taken back (NEEDS B18): they stay visible, no table counts them, and their slot counts as missing.

Only runs that are done: what is still under way is stopped first. A grading that ends meanwhile changes nothing of the run;
when the run is taken back, it counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, func, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.events import EventType
from service.domain.ids import new_id
from service.domain.run_states import Outcome, Phase
from service.store.combining import combine
from service.store.database import Tx
from service.store.notifications import RUNS
from service.store.phases import append_own, notify, touch
from service.store.rows import RunFilter
from service.store.run_filters import conditions
from service.store.tables import agents, runs, tasks
from service.store.tables_evaluations import run_invalidations

_GRADED = frozenset({Outcome.GRADED, Outcome.ABSTAINED, Outcome.UNGRADED})


class Kind(StrEnum):
    """What is done to many runs, and with it which of them it concerns."""

    INVALIDATE = "invalidate"
    REVALIDATE = "revalidate"
    STOP = "stop"


_CONCERNED: Mapping[Kind, ColumnElement[bool]] = {
    Kind.INVALIDATE: (runs.c.phase == Phase.DONE) & runs.c.outcome.is_distinct_from(Outcome.INVALIDATED),
    Kind.REVALIDATE: runs.c.outcome == Outcome.INVALIDATED,
    Kind.STOP: runs.c.phase != Phase.DONE,
}


async def count(tx: Tx, project_id: str, where: RunFilter, kind: Kind) -> tuple[int, int]:
    """Return how many runs the filter lets through, and how many of them would be changed."""
    counts = (func.count(), func.count().filter(_CONCERNED[kind]))
    row = (await tx.execute(_chosen(project_id, where).with_only_columns(*counts))).one()
    return row[0], row[1]


async def next_of(
    tx: Tx, project_id: str, where: RunFilter, kind: Kind, after: str, limit: int
) -> list[tuple[str, str | None]]:
    """Return (id, evaluation) of the runs that it concerns, above the id ``after``, in the order of ids."""
    query = _chosen(project_id, where).where(_CONCERNED[kind], runs.c.id > after)
    return [(row.id, row.evaluation_id) for row in await tx.execute(query.order_by(runs.c.id).limit(limit))]


def _chosen(project_id: str, where: RunFilter) -> Select[Any, Any]:
    query = select(runs.c.id, runs.c.evaluation_id).join(tasks, tasks.c.id == runs.c.task_id)
    query = query.join(agents, agents.c.id == runs.c.agent_id)
    return query.where(runs.c.project_id == project_id, *conditions(where))


async def invalidate(tx: Tx, run_ids: Sequence[str], author: str, reason: str) -> int:
    """Make those of the runs void that are done and are not so yet; return how many. The caller checked the project."""
    count = 0
    for run in await _locked(tx, run_ids):
        if run["phase"] != Phase.DONE or run["outcome"] == Outcome.INVALIDATED:
            continue
        values = {
            "id": new_id("inv"), "project_id": run["project_id"], "run_id": run["id"],
            "author": author, "reason": reason, "outcome": run["outcome"],
        }  # fmt: skip
        await tx.execute(insert(run_invalidations).values(values))
        await _write(tx, run, Outcome.INVALIDATED, {"by": author, "reason": reason, "was": run["outcome"]})
        count += 1
    return count


async def revalidate(tx: Tx, run_ids: Sequence[str], author: str) -> int:
    """Give those of the runs that are void the outcome that they had, or that their gradings say by now; return how many."""
    count = 0
    for run in await _locked(tx, run_ids):
        if run["outcome"] != Outcome.INVALIDATED:
            continue
        was = await _revoke(tx, run["id"], author)
        back = await _write(tx, run, was, {"by": author, "reason": None, "was": Outcome.INVALIDATED})
        if was in _GRADED:
            for plan in filter(None, (run["plan"], run["next_plan"])):
                await combine(tx, back, plan)
        count += 1
    return count


async def _locked(tx: Tx, run_ids: Iterable[str]) -> Sequence[RowMapping]:
    """In the order of ids, so that two who choose the same runs wait for each other and never in a circle."""
    query = select(runs).where(runs.c.id.in_([*run_ids])).order_by(runs.c.id).with_for_update(key_share=True)
    return (await tx.execute(query)).mappings().all()


async def _write(tx: Tx, run: RowMapping, outcome: str | None, said: dict[str, Any]) -> RowMapping:
    changed = await touch(tx, run["id"], outcome=outcome)
    await append_own(tx, changed, EventType.VALIDITY, {"outcome": outcome, **said})
    await notify(tx, RUNS, f"{run['id']} {Phase.DONE}")
    return changed


async def _revoke(tx: Tx, run_id: str, author: str) -> str | None:
    mine = (run_invalidations.c.run_id == run_id, run_invalidations.c.revoked_at.is_(None))
    values = {"revoked_at": func.clock_timestamp(), "revoked_by": author}
    query = run_invalidations.update().where(*mine).values(values).returning(run_invalidations.c.outcome)
    return (await tx.execute(query)).scalar_one()
