"""Controls among the runs: which there are, and what others could be made of."""

from collections.abc import Sequence

from sqlalchemy import func, select

from service.domain.controls import LABEL, OF, SEED, ControlKind
from service.domain.run_states import Phase
from service.store.database import Tx
from service.store.run_filters import facet_holds, is_control, is_no_work
from service.store.tables import agents, runs, tasks

MOST_SOURCES = 1000
"""Runs that one is drawn from."""


async def hold(tx: Tx, project_id: str, kind: ControlKind, of: str, seed: int) -> str | None:
    """Return the run of this control, if there is one; nobody else makes it before the transaction ends."""
    key = f"control {project_id} {kind} {of} {seed}"
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(key, 0))))
    return (await found(tx, project_id, [of], [kind], seed)).get((of, kind))


async def found(
    tx: Tx, project_id: str, originals: Sequence[str], kinds: Sequence[ControlKind], seed: int
) -> dict[tuple[str, ControlKind], str]:
    """Return the controls that there are: (original, kind) → run."""
    of, kind = runs.c.labels[OF].astext, runs.c.labels[LABEL].astext
    mine = (runs.c.project_id == project_id, is_control(), runs.c.labels[SEED].astext == str(seed))
    query = select(runs.c.id, of.label("of"), kind.label("kind")).where(*mine, of.in_(originals), kind.in_(kinds))
    rows = await tx.execute(query.order_by(runs.c.created_at.desc(), runs.c.id.desc()))
    return {(row.of, ControlKind(row.kind)): row.id for row in rows}


async def sources(
    tx: Tx,
    project_id: str,
    *,
    agent_id: str | None = None,
    task_id: str | None = None,
    not_task_id: str | None = None,
    facet: tuple[str, str] | None = None,
) -> list[str]:
    """Return runs whose sealed deliverable, with something in it, may stand in for another: no controls or preflights, by id."""
    wanted = [
        runs.c.project_id == project_id,
        ~is_no_work(),
        runs.c.phase.in_((Phase.GRADING, Phase.DONE)),
        runs.c.deliverable_digest.is_not(None),
        runs.c.deliverable_files > 0,
    ]
    if agent_id is not None:
        wanted.append(runs.c.agent_id == agent_id)
    if task_id is not None:
        wanted.append(runs.c.task_id == task_id)
    if not_task_id is not None:
        wanted.append(runs.c.task_id != not_task_id)
    if facet is not None:
        wanted.append(facet_holds(*facet))
    query = select(runs.c.id).join(tasks, tasks.c.id == runs.c.task_id).join(agents, agents.c.id == runs.c.agent_id)
    return [*(await tx.execute(query.where(*wanted).order_by(runs.c.id).limit(MOST_SOURCES))).scalars()]
