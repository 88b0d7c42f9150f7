"""Regrades: which runs they are of, how far they are, and which of them a job must carry on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, exists, func, literal, or_, select

from service.domain.cleaning import clean_json
from service.domain.ids import new_id
from service.domain.regrades import AGENT, RegradeState, RunStep
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.notifications import REGRADES
from service.store.overlays import facet_of
from service.store.paging import Sort
from service.store.phases import notify
from service.store.rows import RunFilter
from service.store.rows_grading import RegradeRow
from service.store.run_filters import work_of_agents
from service.store.tables import agents, gradings, runs, tasks
from service.store.tables_grading import regrade_runs, regrades

LISTING = Listing(
    regrades,
    RegradeRow.of,
    sorts_by(created_at=Sort(regrades.c.created_at)),
    {name: one_of(regrades.c[name]) for name in ("plan", "state")},
    version=regrades.c.revision,
)
_STARTED = (RegradeState.SAMPLING, RegradeState.SAMPLED, RegradeState.RUNNING, RegradeState.DONE)
_OPEN_VERDICTS = ("pending", "grading")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run with a sealed deliverable, as far as a regrade looks at it."""

    run_id: str
    task_id: str
    digest: str
    size_bytes: int
    plan: str
    fraction: float | None
    """Of its present verdict; null without a score."""
    stratum: str
    """Empty without one."""


@dataclass(frozen=True, slots=True)
class Progress:
    runs: int
    sampled: int
    steps: Mapping[str, int]
    gradings: Mapping[str, int]
    """By state."""


async def candidates(tx: Tx, project_id: str, where: RunFilter, stratify: str | None, limit: int) -> list[Candidate]:
    """Return what the filter lets through, oldest first, as far as it was delivered and its work is over."""
    delivered = (runs.c.deliverable_digest.is_not(None), runs.c.phase.in_(("grading", "done")))
    query = (
        select(runs, _stratum(stratify).label("stratum"))
        .join(tasks, tasks.c.id == runs.c.task_id)
        .join(agents, agents.c.id == runs.c.agent_id)
        .where(runs.c.project_id == project_id, *delivered, *work_of_agents(where))
        .order_by(runs.c.created_at, runs.c.id)
        .limit(limit)
    )
    return [
        Candidate(
            run_id=row["id"],
            task_id=row["task_id"],
            digest=row["deliverable_digest"],
            size_bytes=row["deliverable_bytes"],
            plan=row["plan"],
            fraction=row["score"] / row["max_score"] if row["score"] is not None and row["max_score"] else None,
            stratum=row["stratum"] or "",
        )
        for row in (await tx.execute(query)).mappings()
    ]


def _stratum(stratify: str | None) -> ColumnElement[Any]:
    if stratify is None:
        return literal("")
    return agents.c.label if stratify == AGENT else facet_of(stratify).astext


async def create(
    tx: Tx,
    project_id: str,
    values: Mapping[str, Any],
    chosen: Sequence[Candidate],
    sampled: frozenset[str],
) -> RegradeRow:
    """Keep a draft: ``values`` are its columns plan, spec, estimate, round, author."""
    row_id = new_id("rgr")
    kept = {**values, "spec": clean_json(values["spec"]), "estimate": clean_json(values["estimate"])}
    query = regrades.insert().values(id=row_id, project_id=project_id, state=RegradeState.DRAFT, **kept)
    row = RegradeRow.of((await tx.execute(query.returning(regrades))).mappings().one())
    for start in range(0, len(chosen), 1000):
        batch = [
            {
                "regrade_id": row_id,
                "run_id": one.run_id,
                "position": start + n,
                "sampled": one.run_id in sampled,
                "before_plan": one.plan,
                "before": one.fraction,
            }
            for n, one in enumerate(chosen[start : start + 1000])
        ]
        await tx.execute(regrade_runs.insert(), batch)
    return row


async def get(tx: Tx, project_id: str, regrade_id: str, *, lock: bool = False) -> RegradeRow | None:
    """Return the project's regrade; null if there is none (or it is another project's)."""
    query = select(regrades).where(regrades.c.id == regrade_id, regrades.c.project_id == project_id)
    row = (await tx.execute(query.with_for_update() if lock else query)).mappings().one_or_none()
    return None if row is None else RegradeRow.of(row)


async def load(tx: Tx, regrade_id: str, *, lock: bool = False) -> RegradeRow | None:
    """Return a regrade of any project, for jobs."""
    query = select(regrades).where(regrades.c.id == regrade_id)
    row = (await tx.execute(query.with_for_update() if lock else query)).mappings().one_or_none()
    return None if row is None else RegradeRow.of(row)


async def started_like(tx: Tx, project_id: str, plan: str, round: int, digest: str) -> str | None:
    """Return a regrade of the same plan and round over the same choice that was started and not cancelled.

    Until the transaction ends nobody else gets an answer for this project and plan.
    """
    key = f"regrade {project_id} {plan}"
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(key, 0))))
    c = regrades.c
    mine = (c.project_id == project_id, c.plan == plan, c.round == round, c.state.in_(_STARTED))
    query = select(c.id).where(*mine, c.spec["digest"].astext == digest).limit(1)
    return (await tx.execute(query)).scalar_one_or_none()


async def change(tx: Tx, regrade_id: str, **columns: Any) -> RegradeRow:
    """Write columns, raise the revision, wake who carries regrades on. The caller has locked it."""
    query = regrades.update().where(regrades.c.id == regrade_id).values(**columns, revision=regrades.c.revision + 1)
    row = RegradeRow.of((await tx.execute(query.returning(regrades))).mappings().one())
    await notify(tx, REGRADES, regrade_id)
    return row


async def in_step(tx: Tx, regrade_id: str, step: RunStep, limit: int, *, sampled_only: bool = False) -> list[str]:
    """Return runs of the regrade that stand there, in its order."""
    c = regrade_runs.c
    wanted = [c.regrade_id == regrade_id, c.step == step, *([c.sampled] if sampled_only else [])]
    return [*(await tx.execute(select(c.run_id).where(*wanted).order_by(c.position).limit(limit))).scalars()]


async def set_step(tx: Tx, regrade_id: str, run_id: str, step: RunStep) -> None:
    c = regrade_runs.c
    await tx.execute(regrade_runs.update().where(c.regrade_id == regrade_id, c.run_id == run_id).values(step=step))


async def progress(tx: Tx, regrade_id: str) -> Progress:
    c = regrade_runs.c
    query = select(c.step, c.sampled, func.count()).where(c.regrade_id == regrade_id).group_by(c.step, c.sampled)
    total = sampled = 0
    steps: dict[str, int] = {}
    for step, of_sample, n in await tx.execute(query):
        steps[step] = steps.get(step, 0) + n
        total += n
        sampled += n if of_sample else 0
    g = gradings.c
    states = select(g.state, func.count()).join(regrade_runs, c.run_id == g.run_id)
    states = states.where(c.regrade_id == regrade_id, g.regrade_id == regrade_id).group_by(g.state)
    return Progress(total, sampled, steps, {str(state): int(n) for state, n in await tx.execute(states)})


async def open_gradings(tx: Tx, regrade_id: str, limit: int) -> list[str]:
    """Return the regrade's gradings that have not ended."""
    g = gradings.c
    query = select(g.id).where(g.state.in_(_OPEN_VERDICTS), g.regrade_id == regrade_id)
    return [*(await tx.execute(query.order_by(g.run_id, g.id).limit(limit))).scalars()]


async def open_ids(tx: Tx) -> list[str]:
    """Return the regrades that a job can carry on now, oldest first, at most 1 000.

    Those with runs to be queued, those whose gradings have all ended, and cancelled ones with gradings to be closed.
    """
    c, r, g = regrades.c, regrade_runs.c, gradings.c
    waits = exists().where(
        r.regrade_id == c.id, r.step == RunStep.WAITING, or_(c.state == RegradeState.RUNNING, r.sampled)
    )
    grades = exists().where(g.regrade_id == c.id, g.state.in_(_OPEN_VERDICTS))
    going = c.state.in_((RegradeState.SAMPLING, RegradeState.RUNNING)) & or_(waits, ~grades)
    closing = (c.state == RegradeState.CANCELLED) & grades
    query = select(c.id).where(or_(going, closing)).order_by(c.created_at).limit(1000)
    return [*(await tx.execute(query)).scalars()]
