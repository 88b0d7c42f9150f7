"""A run's verdict: what the primary gradings of its plan's newest round say together, people's overrides applied."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import RowMapping, func, select

from service.domain.combining import Counted, combined
from service.domain.grading_plans import Combine
from service.domain.run_states import Flag, Outcome, Phase
from service.domain.verdicts import ENDED_VERDICTS, VerdictState, outcome_of
from service.store import grading_plans, reviews
from service.store.database import Tx
from service.store.notifications import RUNS
from service.store.phases import change_phase, notify, touch
from service.store.rows_grading import ReviewRow
from service.store.tables import gradings

_FIXED_OUTCOMES = frozenset({Outcome.CANCELLED, Outcome.INVALIDATED})
_STATE_OF = {Outcome.GRADED: VerdictState.GRADED, Outcome.ABSTAINED: VerdictState.ABSTAINED}


async def combine(tx: Tx, run: RowMapping, plan: str) -> None:
    """Write the run's verdict under ``plan`` once all gradings that count have ended; the caller has locked the run.

    ``plan`` counts if it is the run's own or the one that is to become so (``next_plan``): that one takes over together
    with its verdict. A cancelled or invalidated run keeps its outcome.
    """
    if run["outcome"] in _FIXED_OUTCOMES or plan not in (run["plan"], run["next_plan"]):
        return
    found = await _newest_round(tx, run["id"], plan)
    if not found or not ENDED_VERDICTS.issuperset(row["state"] for row in found):
        return
    counted = [*(await counted_of(tx, found)).values()]
    outcome = outcome_of([c.state for c in counted])
    score, max_score = None, None
    if outcome is Outcome.GRADED:
        score, max_score = combined((await grading_plans.spec_of(tx, run["project_id"], plan)).combine, counted)
    columns: dict[str, Any] = {
        "outcome": outcome,
        "verdict_state": _STATE_OF.get(outcome, VerdictState.FAILED),
        "score": score,
        "max_score": max_score,
        "graded_at": func.clock_timestamp(),
        "plan": plan,
        "flags": _flags(run["flags"], any(c.overridden for c in counted)),
    }
    if plan == run["next_plan"]:
        columns["next_plan"] = None
    await _write(tx, run, columns)


async def _write(tx: Tx, run: RowMapping, columns: dict[str, Any]) -> None:
    if run["phase"] != Phase.DONE or run["outcome"] != columns["outcome"]:
        await change_phase(tx, run, Phase.DONE, doing=None, **columns)
    else:
        await touch(tx, run["id"], **columns)
        await notify(tx, RUNS, f"{run['id']} {Phase.DONE}")


async def _newest_round(tx: Tx, run_id: str, plan: str) -> Sequence[RowMapping]:
    mine = (gradings.c.run_id == run_id, gradings.c.plan == plan, gradings.c.primary.is_(True))
    newest = select(func.max(gradings.c.round)).where(*mine).scalar_subquery()
    query = select(gradings).where(*mine, gradings.c.round == newest)
    return (await tx.execute(query.order_by(gradings.c.created_at, gradings.c.id))).mappings().all()


async def last_round(tx: Tx, run_id: str) -> int:
    """Return the highest round of any of the run's gradings; 0 without one."""
    query = select(func.coalesce(func.max(gradings.c.round), 0)).where(gradings.c.run_id == run_id)
    return (await tx.execute(query)).scalar_one()


async def counted_of(tx: Tx, found: Sequence[RowMapping]) -> dict[str, Counted]:
    """Return how each of these gradings counts, by id: as it was decided, or as a person overrode it."""
    standing = await reviews.standing_overrides(tx, [row["id"] for row in found])
    counted = {row["id"]: Counted(VerdictState(row["state"]), row["score"], row["max_score"]) for row in found}
    return {id_: _overridden(c, standing[id_]) if id_ in standing else c for id_, c in counted.items()}


def _overridden(counted: Counted, said: ReviewRow) -> Counted:
    return replace(counted, state=VerdictState.GRADED, score=said.score, max_score=said.max_score, overridden=True)


def _flags(present: Sequence[str], overridden: bool) -> list[str]:
    rest = [flag for flag in present if flag != Flag.OVERRIDDEN]
    return [*rest, Flag.OVERRIDDEN] if overridden else rest


async def is_graded_under(tx: Tx, run_id: str, plan: str) -> bool:
    """Tell whether the run has gradings of the plan that count, ended or not."""
    return bool(await _newest_round(tx, run_id, plan))


@dataclass(frozen=True, slots=True)
class Said:
    """What a plan says of a run. Without an outcome a grading that counts has not ended yet."""

    outcome: Outcome | None
    score: float | None = None
    max_score: float | None = None


async def verdicts_under(tx: Tx, project_id: str, plan: str, run_ids: Sequence[str]) -> dict[str, Said]:
    """Return what the plan says of each run, overrides applied, also where it is not the run's own.

    Runs that it does not grade are left out. The caller checked the project. Raises NotFound ``plan_not_found``.
    """
    rule = (await grading_plans.spec_of(tx, project_id, plan)).combine
    g = gradings.c
    query = select(gradings).where(g.run_id.in_(run_ids), g.plan == plan, g.primary.is_(True))
    by_run: dict[str, list[RowMapping]] = {}
    for row in (await tx.execute(query.order_by(g.round, g.created_at, g.id))).mappings():
        newer = by_run.get(row["run_id"], [])
        by_run[row["run_id"]] = [*(r for r in newer if r["round"] == row["round"]), row]
    counted = await counted_of(tx, [row for rows in by_run.values() for row in rows])
    return {run_id: _said(rule, [counted[row["id"]] for row in rows]) for run_id, rows in by_run.items()}


def _said(rule: Combine, counted: Sequence[Counted]) -> Said:
    states = [c.state for c in counted]
    if not ENDED_VERDICTS.issuperset(states):
        return Said(None)
    outcome = outcome_of(states)
    return Said(outcome, *(combined(rule, counted) if outcome is Outcome.GRADED else (None, None)))
