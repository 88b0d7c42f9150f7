"""What the watchdog looks at: evaluations under way, those whose last dollars are not summed yet, projects with budgets."""

from dataclasses import dataclass
from typing import ClassVar

from sqlalchemy import Select, func, or_, select, text

from service.domain.evaluations import EvaluationBudget, EvaluationState
from service.store.database import Tx
from service.store.evaluations import evaluations as rows
from service.store.rows import Converters, Json, Row
from service.store.rows_evaluations import ListedEvaluation
from service.store.tables import projects, runs
from service.store.tables_evaluations import evaluations

MOST = 500
"""Evaluations of one look."""
JUDGES_BUDGET = "judges_budget"
"""Why a grading waits."""
JUDGES_WAIT_S = 600.0
"""Until it is looked at again, if nobody lets it go before."""
_OPEN = (EvaluationState.CHECKING, EvaluationState.RUNNING)
_LIVE = ("provisioning", "running", "paused", "awaiting_confirmation")
_MINE = "run_id IN (SELECT id FROM runs r WHERE r.evaluation_id = :id)"
_OF_PROJECT = "project_id = :id"
_WAIT = """UPDATE gradings SET not_before = clock_timestamp() + make_interval(secs => :wait_s), cause = :cause, started_at = NULL
    WHERE queue = 'judges' AND state = 'pending' AND {whose}
      AND (not_before IS NULL OR not_before < clock_timestamp() + make_interval(secs => :wait_s / 2))"""
_GO_ON = """UPDATE gradings SET not_before = NULL, cause = NULL
    WHERE queue = 'judges' AND state = 'pending' AND cause = :cause AND {whose}"""
# No lock is taken while runs are under way: then the watchdog sums in any case.
_SUM_AGAIN = text("""UPDATE evaluations SET spend = spend - 'at'
    WHERE id = :id AND state IN ('done', 'stopped') AND spend ? 'at'""")
_HELD = text("""
    SELECT coalesce(e.spend -> 'judges_held' = 'true', false)
           OR p.budget IS NOT NULL AND coalesce(p.spend -> 'judges_held' = 'true', false)
    FROM runs r JOIN projects p ON p.id = r.project_id LEFT JOIN evaluations e ON e.id = r.evaluation_id
    WHERE r.id = :run_id""")


@dataclass(frozen=True, slots=True)
class BudgetedProject(Row):
    id: str
    budget: EvaluationBudget
    spend: Json
    CONVERT: ClassVar[Converters] = {"budget": EvaluationBudget.model_validate}


def _listed() -> Select[tuple[object, ...]]:
    return select(*rows.LISTING.columns)


async def under_way(tx: Tx) -> list[ListedEvaluation]:
    """Return evaluations whose runs may begin, oldest first, and those that ended since their dollars were summed last."""
    summed = func.coalesce(evaluations.c.spend["at"].astext, "")
    text_of = func.to_char(func.timezone("UTC", evaluations.c.updated_at), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ended = evaluations.c.state.in_((EvaluationState.DONE, EvaluationState.STOPPED)) & (text_of > summed)
    query = _listed().where(or_(evaluations.c.state.in_(_OPEN), ended))
    found = await tx.execute(query.order_by(evaluations.c.created_at).limit(MOST))
    return [ListedEvaluation.of(row) for row in found.mappings()]


async def with_budget(tx: Tx) -> list[BudgetedProject]:
    """Return the projects that have a budget."""
    query = select(projects.c.id, projects.c.budget, projects.c.spend).where(projects.c.budget.is_not(None))
    return [BudgetedProject.of(row) for row in (await tx.execute(query)).mappings()]


async def save(tx: Tx, evaluation_id: str, spend: Json) -> None:
    """Write what is spent, with the time; the evaluation's own time of change stays."""
    await tx.execute(evaluations.update().where(evaluations.c.id == evaluation_id).values(spend=spend))


async def sum_again(tx: Tx, evaluation_id: str | None) -> None:
    """Let the watchdog sum an evaluation that has ended once more: a judge asked since then has cost something."""
    if evaluation_id is not None:
        await tx.execute(_SUM_AGAIN, {"id": evaluation_id})


async def save_project(tx: Tx, project_id: str, spend: Json) -> None:
    await tx.execute(projects.update().where(projects.c.id == project_id).values(spend=spend))


async def hold_judges(tx: Tx, whose: str, *, project: bool = False) -> int:
    """Let gradings by judges wait that have not begun; they lose no try, and their patience begins anew."""
    return await _judges(tx, _WAIT, whose, project)


async def release_judges(tx: Tx, whose: str, *, project: bool = False) -> int:
    return await _judges(tx, _GO_ON, whose, project)


async def _judges(tx: Tx, statement: str, whose: str, project: bool) -> int:
    values = {"id": whose, "cause": JUDGES_BUDGET, "wait_s": JUDGES_WAIT_S}
    if statement is _GO_ON:
        del values["wait_s"]
    return (await tx.execute(text(statement.format(whose=_OF_PROJECT if project else _MINE)), values)).rowcount


async def judges_wait(tx: Tx, run_id: str) -> bool:
    """Tell whether nothing of the run may be asked of judges now: their budget is used up."""
    return bool((await tx.execute(_HELD, {"run_id": run_id})).scalar_one_or_none())


async def at_work(
    tx: Tx, *, evaluation_id: str | None = None, project_id: str | None = None, limit: int = 100
) -> list[str]:
    """Return runs whose agents are at work and that nobody has stopped, oldest first."""
    whose = runs.c.evaluation_id == evaluation_id if evaluation_id is not None else runs.c.project_id == project_id
    query = select(runs.c.id).where(whose, runs.c.phase.in_(_LIVE), runs.c.phase != "done", runs.c.stop_mode.is_(None))
    return [*(await tx.execute(query.order_by(runs.c.id).limit(limit))).scalars()]
