"""Runs of an evaluation by their places in its results. The caller has checked the project."""

from collections.abc import Collection

from sqlalchemy import select

from service.domain.evaluation_plans import Filled, Slot
from service.domain.run_states import EndedBecause, Outcome, Phase
from service.store.database import Tx
from service.store.tables import runs


async def filled(tx: Tx, evaluation_id: str) -> list[Filled]:
    """Return every run of the evaluation, oldest first."""
    c = runs.c
    columns = (c.id, c.agent_id, c.task_id, c.sample, c.outcome, c.ended_because)
    query = select(*columns).where(c.evaluation_id == evaluation_id).order_by(c.created_at, c.id)
    return [
        Filled(
            row.id,
            Slot(row.agent_id, row.task_id, row.sample),
            None if row.outcome is None else Outcome(row.outcome),
            None if row.ended_because is None else EndedBecause(row.ended_because),
        )
        for row in await tx.execute(query)
    ]


async def at_work(tx: Tx, evaluation_id: str, after: str, limit: int) -> list[str]:
    """Return runs that are not done with ids above ``after``, in the order of their ids."""
    query = select(runs.c.id).where(
        runs.c.evaluation_id == evaluation_id, runs.c.phase != Phase.DONE, runs.c.id > after
    )
    return [*(await tx.execute(query.order_by(runs.c.id).limit(limit))).scalars()]


async def lock(tx: Tx, run_ids: Collection[str]) -> None:
    """Lock these runs, in the order of their ids, until the transaction ends."""
    query = select(runs.c.id).where(runs.c.id.in_(run_ids)).order_by(runs.c.id).with_for_update(key_share=True)
    await tx.execute(query)
