"""Runs of an evaluation by their places in its results. The caller has checked the project."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import select

from service.domain.evaluation_plans import Slot
from service.domain.run_states import Outcome, Phase
from service.store.database import Tx
from service.store.tables import runs

_NOT_COUNTING = frozenset({Outcome.CANCELLED, Outcome.INVALIDATED})


@dataclass(frozen=True, slots=True)
class Filled:
    """A run in its slot."""

    run_id: str
    slot: Slot
    phase: Phase
    outcome: Outcome | None
    ended_because: str | None

    @property
    def counts(self) -> bool:
        return self.outcome not in _NOT_COUNTING


async def filled(tx: Tx, evaluation_id: str) -> list[Filled]:
    """Return every run of the evaluation, oldest first."""
    c = runs.c
    columns = (c.id, c.agent_id, c.task_id, c.sample, c.phase, c.outcome, c.ended_because)
    query = select(*columns).where(c.evaluation_id == evaluation_id).order_by(c.created_at, c.id)
    return [
        Filled(
            row.id,
            Slot(row.agent_id, row.task_id, row.sample),
            Phase(row.phase),
            None if row.outcome is None else Outcome(row.outcome),
            row.ended_because,
        )
        for row in await tx.execute(query)
    ]


async def at_work(tx: Tx, evaluation_id: str, but: Collection[str], limit: int) -> list[str]:
    """Return runs that are not done, in the order of their ids, without ``but``."""
    query = select(runs.c.id).where(runs.c.evaluation_id == evaluation_id, runs.c.phase != Phase.DONE)
    rows = (await tx.execute(query.where(runs.c.id.not_in(but)).order_by(runs.c.id).limit(limit))).scalars()
    return [*rows]
