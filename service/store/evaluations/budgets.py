"""What evaluations and projects have spent, and what their live runs may still spend (NEEDS B8)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from sqlalchemy import text

from service.store.database import Tx
from service.store.evaluations.gates import LIVE_PHASES, Dollars, Found, Gatekeeper

ZERO = Decimal(0)
_LIVE = "(" + ", ".join(f"'{phase}'" for phase in LIVE_PHASES) + ")"
_MAY = "coalesce((r.budget ->> 'max_usd')::numeric, {mean}, 0)"
_COST = "coalesce(r.cost_usd_all_attempts, 0)"
# A run that never began says nothing of what runs of its agent take.
_OF_EVALUATIONS = text(f"""
    WITH spent AS (
        SELECT r.evaluation_id, r.agent_id, sum({_COST}) AS spent_usd,
               avg(r.cost_usd_all_attempts) FILTER (WHERE r.attempt > 0 AND r.phase IN ('grading', 'done')) AS mean_usd
        FROM runs r WHERE r.evaluation_id = ANY(CAST(:ids AS text[])) GROUP BY 1, 2),
    live AS (
        SELECT r.evaluation_id, r.agent_id,
               sum(greatest(0, {_MAY.format(mean="s.mean_usd")} - {_COST})) AS committed_usd
        FROM runs r JOIN spent s ON s.evaluation_id = r.evaluation_id AND s.agent_id = r.agent_id
        WHERE r.phase IN {_LIVE} AND r.phase <> 'done' GROUP BY 1, 2)
    SELECT s.*, coalesce(l.committed_usd, 0) AS committed_usd
    FROM spent s LEFT JOIN live l ON l.evaluation_id = s.evaluation_id AND l.agent_id = s.agent_id""")  # noqa: S608 - constants only
# A project's runs are too many to be summed for every claim: what ended is as of the last look at its budget.
_OF_PROJECTS = text(f"""
    SELECT p.id, (p.budget ->> 'agents_usd')::numeric AS limit_usd,
           coalesce((p.spend ->> 'settled_usd')::numeric, 0) AS settled_usd,
           (SELECT coalesce(sum(greatest({_COST}, {_MAY.format(mean="(p.spend ->> 'mean_usd')::numeric")})), 0)
            FROM runs r WHERE r.project_id = p.id AND r.phase IN {_LIVE} AND r.phase <> 'done') AS live_usd,
           (p.spend ->> 'mean_usd')::numeric AS mean_usd
    FROM projects p WHERE p.id = ANY(CAST(:ids AS text[])) AND p.budget ->> 'agents_usd' IS NOT NULL""")  # noqa: S608 - constants only
_SPEND_OF_PROJECT = text(f"""
    SELECT coalesce(sum({_COST}), 0) AS agents_usd,
           coalesce(sum({_COST}) FILTER (WHERE r.phase NOT IN {_LIVE}), 0) AS settled_usd,
           avg(r.cost_usd_all_attempts) FILTER (WHERE r.attempt > 0 AND r.phase IN ('grading', 'done')) AS mean_usd
    FROM runs r WHERE r.project_id = :id""")  # noqa: S608 - constants only
# What was asked for a grading, under whatever plan; a request whose price is not known counts as what was reserved for it.
_JUDGED = "coalesce(m.cost_usd, CASE WHEN m.usage_known THEN 0 ELSE m.reserved_usd END, 0)"
_JUDGES_OF_EVALUATION = text(f"""
    SELECT coalesce(sum({_JUDGED}), 0) FROM runs r JOIN gradings g ON g.run_id = r.id
    JOIN model_requests m ON m.subject = g.id AND m.purpose = 'judge' WHERE r.evaluation_id = :id""")  # noqa: S608 - constants only
_JUDGES_OF_PROJECT = text(f"""
    SELECT coalesce(sum({_JUDGED}), 0) FROM model_requests m
    WHERE m.project_id = :id AND m.purpose = 'judge' AND m.subject IS NOT NULL""")  # noqa: S608 - constants only


@dataclass(slots=True)
class Spent:
    """Of one evaluation, in dollars: models and services, all attempts of all its runs."""

    agents_usd: Decimal = ZERO
    committed_usd: Decimal = ZERO
    """What live runs may take beyond what they took: up to their own budget, else to their agent's mean."""
    means: dict[str, Decimal] = field(default_factory=dict[str, Decimal])


async def spent(tx: Tx, evaluation_ids: Sequence[str]) -> dict[str, Spent]:
    """Return what each evaluation has spent, as far as the ledger has settled it."""
    found = {id_: Spent() for id_ in evaluation_ids}
    for row in (await tx.execute(_OF_EVALUATIONS, {"ids": [*evaluation_ids]})).mappings():
        one = found[row["evaluation_id"]]
        one.agents_usd += row["spent_usd"]
        one.committed_usd += row["committed_usd"]
        if row["mean_usd"] is not None:
            one.means[row["agent_id"]] = row["mean_usd"]
    return found


async def judges_usd(tx: Tx, evaluation_id: str) -> Decimal:
    """Return what the gradings of an evaluation's runs took."""
    return (await tx.execute(_JUDGES_OF_EVALUATION, {"id": evaluation_id})).scalar_one()


@dataclass(frozen=True, slots=True)
class ProjectSpend:
    agents_usd: Decimal
    settled_usd: Decimal
    """Of runs that are not live."""
    mean_usd: Decimal | None
    judges_usd: Decimal


async def of_project(tx: Tx, project_id: str) -> ProjectSpend:
    """Return what all runs of a project took; reads them all."""
    row = (await tx.execute(_SPEND_OF_PROJECT, {"id": project_id})).mappings().one()
    judges = (await tx.execute(_JUDGES_OF_PROJECT, {"id": project_id})).scalar_one()
    return ProjectSpend(row["agents_usd"], row["settled_usd"], row["mean_usd"], judges)


async def fill(tx: Tx, keeper: Gatekeeper, candidates: Iterable[Found]) -> None:
    """Give the keeper what the budgets of these candidates' evaluations and projects leave, where it does not have it yet."""
    limits: dict[str, Decimal] = {}
    projects: set[str] = set()
    for c in candidates:
        if c["budget_usd"] is not None and c["gate_evaluation"] not in keeper.dollars:
            limits[c["gate_evaluation"]] = c["budget_usd"]
        if c["project_budget"] is not None and c["project_id"] not in keeper.dollars:
            projects.add(c["project_id"])
    if limits:
        for id_, one in (await spent(tx, [*limits])).items():
            keeper.dollars[id_] = Dollars(limits[id_] - one.agents_usd - one.committed_usd, one.means)
    if projects:
        for row in (await tx.execute(_OF_PROJECTS, {"ids": [*projects]})).mappings():
            left = row["limit_usd"] - row["settled_usd"] - row["live_usd"]
            keeper.dollars[row["id"]] = Dollars(left, otherwise=row["mean_usd"] or ZERO)
