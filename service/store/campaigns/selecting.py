"""Which runs a campaign could rate: those with a sealed deliverable that its selection lets through."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Float, and_, cast, func, select

from service.domain.campaigns import Selection
from service.domain.errors import Invalid
from service.domain.tasks import Facet
from service.domain.verdicts import VerdictState
from service.store.database import Tx
from service.store.overlays import facet_of
from service.store.run_filters import filter_of, work_of_agents
from service.store.tables import agents, gradings, runs, tasks

MOST_CANDIDATES = 100_000


@dataclass(frozen=True, slots=True)
class Candidate:
    run_id: str
    task_id: str
    agent_id: str
    categories: list[str]
    stratum: str
    files: int
    """0: nothing was delivered."""


async def candidates(
    tx: Tx, project_id: str, selection: Selection, category: str, agent_ids: Sequence[str] = ()
) -> list[Candidate]:
    """Return the runs in the order of their ids. ``agent_ids``: only of these, as well.

    Raises Invalid("too_many_runs").
    """
    query = _query(selection, category).where(
        runs.c.project_id == project_id, *work_of_agents(filter_of(selection.where))
    )
    if agent_ids:
        query = query.where(runs.c.agent_id.in_(agent_ids))
    if selection.verdict is not None:
        share = _share(selection.plan)
        succeeded = share >= selection.accepted_from
        query = query.where(succeeded if selection.verdict == "accepted" else ~succeeded)
    rows = (await tx.execute(query.order_by(runs.c.id).limit(MOST_CANDIDATES + 1))).mappings().all()
    if len(rows) > MOST_CANDIDATES:
        raise Invalid("too_many_runs", f"the selection lets more than {MOST_CANDIDATES} runs through")
    return [_candidate(row, selection.stratify) for row in rows]


def _query(selection: Selection, category: str) -> Any:
    stratum = facet_of(selection.stratify or category)
    columns = (runs.c.id, runs.c.task_id, runs.c.agent_id, runs.c.deliverable_files)
    query = select(*columns, facet_of(category).label("category"), stratum.label("stratum"))
    query = query.join(tasks, tasks.c.id == runs.c.task_id).join(agents, agents.c.id == runs.c.agent_id)
    return query.where(runs.c.deliverable_digest.is_not(None))


def _share(plan: str | None) -> ColumnElement[Any]:
    """Share of the points that the run's verdict, or that under the plan, gives; null without a score."""
    if plan is None:
        return runs.c.score / func.nullif(runs.c.max_score, cast(0, Float))
    g = gradings.c
    mine = (g.run_id == runs.c.id, g.plan == plan, g.primary.is_(True))
    newest = select(func.max(g.round)).where(*mine).correlate(runs).scalar_subquery()
    graded = func.bool_and(g.state == VerdictState.GRADED)
    share = func.sum(g.score) / func.nullif(func.sum(g.max_score), cast(0, Float))
    return select(share).where(and_(*mine, g.round == newest)).having(graded).correlate(runs).scalar_subquery()


def _candidate(row: Any, stratify: str | None) -> Candidate:
    stratum = row["agent_id"] if stratify == "agent" else ",".join(sorted(_texts(row["stratum"])))
    categories = _texts(row["category"])
    return Candidate(row["id"], row["task_id"], row["agent_id"], categories, stratum, row["deliverable_files"])


def _texts(facet: Facet | None) -> list[str]:
    if facet is None:
        return []
    return [*facet] if isinstance(facet, list) else [facet if isinstance(facet, str) else f"{facet:g}"]
