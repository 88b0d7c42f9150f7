"""Budgets of evaluations and projects: what is spent is summed, said at 80 %, and holds at 100 % (NEEDS B8)."""

import time
from collections.abc import MutableMapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import structlog

from service.domain.evaluations import EvaluationBudget, EvaluationState
from service.domain.run_states import StopMode
from service.domain.spending import Level, Use, dollars, mark, told
from service.domain.webhooks import HookEvent
from service.lifecycle.evaluations.control import compact, note_hold
from service.lifecycle.stop import stop
from service.store import clock
from service.store.announcements import announce
from service.store.database import Database, Tx
from service.store.evaluations import budgets, control, evaluations, watching
from service.store.evaluations.watching import BudgetedProject
from service.store.rows import Json
from service.store.rows_evaluations import EvaluationRow, ListedEvaluation

WATCHDOG = "watchdog"
AGENTS, JUDGES, COMMITTED = "agents_usd", "judges_usd", "committed_usd"
_SHARE = 20
"""Summing takes at most a twentieth of the time."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def look_at_evaluation(db: Database, row: ListedEvaluation, due: MutableMapping[str, float]) -> None:
    """Sum what an evaluation has spent, and do what its budget asks for. Raises Unavailable."""
    if time.monotonic() < due.get(row.id, 0.0):
        return
    began = time.monotonic()
    async with db.reading() as tx:
        at = await clock.now(tx)
        spent, judges = (await budgets.spent(tx, [row.id]))[row.id], await budgets.judges_usd(tx, row.id)
    figures = {
        name: dollars(v) for name, v in ((AGENTS, spent.agents_usd), (JUDGES, judges), (COMMITTED, spent.committed_usd))
    }
    uses = _uses(row.budget, spent.agents_usd, judges, spent.committed_usd)
    stopping = _is_full(uses, AGENTS) and row.budget.at_limit == "stop"
    if _is_news(row, figures, uses):
        async with db.transaction() as tx:
            await _note(tx, row.id, figures, at)
    due[row.id] = time.monotonic() + _SHARE * (time.monotonic() - began)
    if stopping:
        await _stop(db, row.project_id, evaluation_id=row.id)


def _is_news(row: ListedEvaluation, figures: dict[str, str], uses: dict[str, Use]) -> bool:
    by_budget = row.hold is not None and row.hold.get("reason") == control.BUDGET
    return (
        row.state in (EvaluationState.DONE, EvaluationState.STOPPED)
        or any(row.spend.get(name) != value for name, value in figures.items())
        or (row.spend.get("told") or {}) != _marks(uses)
        or by_budget != _is_full(uses, AGENTS)
        or bool(row.spend.get("judges_held")) != _is_full(uses, JUDGES)
    )


async def _note(tx: Tx, evaluation_id: str, figures: dict[str, str], at: datetime) -> None:
    """Write what is spent, and let budgets that were changed meanwhile count as they are now."""
    await evaluations.turn(tx, evaluation_id)
    row = await evaluations.load(tx, evaluation_id)
    if row is None:
        return
    uses = _uses(row.budget, *(Decimal(figures[name]) for name in (AGENTS, JUDGES, COMMITTED)))
    held = _is_full(uses, JUDGES)
    await _let_judges(tx, row.id, row.spend, held)
    await _say(tx, row, uses)
    at_text = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    await watching.save(tx, row.id, {**figures, "judges_held": held, "told": _marks(uses), "at": at_text})
    await _hold(tx, row, uses)


def _uses(
    budget: EvaluationBudget, agents: Decimal, judges: Decimal, committed: Decimal = Decimal(0)
) -> dict[str, Use]:
    found: dict[str, Use] = {}
    if budget.agents_usd is not None:
        found[AGENTS] = Use(Decimal(budget.agents_usd), agents, committed)
    if budget.judges_usd is not None:
        found[JUDGES] = Use(Decimal(budget.judges_usd), judges)
    return found


def _marks(uses: dict[str, Use]) -> dict[str, str]:
    return {name: mark(use) for name, use in uses.items() if use.level is not Level.FINE}


def _is_full(uses: dict[str, Use], name: str) -> bool:
    return name in uses and uses[name].level is Level.FULL


async def _let_judges(tx: Tx, whose: str, before: Json, held: bool, *, project: bool = False) -> None:
    if held:
        await watching.hold_judges(tx, whose, project=project)
    elif before.get("judges_held"):
        await watching.release_judges(tx, whose, project=project)


async def _say(tx: Tx, row: EvaluationRow, uses: dict[str, Use]) -> None:
    """Tell once of each level that a budget has reached."""
    before: dict[str, str] = row.spend.get("told") or {}
    for name, use in uses.items():
        if told(before, name, use):
            detail = _detail(name, use)
            await evaluations.note(tx, row.id, WATCHDOG, "budget", detail)
            data = {**compact(row), "budget": detail}
            await announce(tx, row.project_id, HookEvent.EVALUATION_BUDGET, data, row.labels)


def _detail(name: str, use: Use) -> Json:
    return {"of": name, "percent": int(use.level), "limit_usd": dollars(use.limit), "spent_usd": dollars(use.spent)}


async def _hold(tx: Tx, row: EvaluationRow, uses: dict[str, Use]) -> None:
    """Hold what has no hold yet, or let go again."""
    by_budget = row.hold is not None and row.hold.get("reason") == control.BUDGET
    if _is_full(uses, AGENTS) and row.hold is None:
        words = _words(uses[AGENTS])
        changed = await control.hold(tx, row.id, control.BUDGET, words, by=WATCHDOG)
        await note_hold(tx, changed, WATCHDOG, {"reason": control.BUDGET, "detail": words, "agents": None})
        log.warning("evaluation_held", evaluation=row.id, reason=control.BUDGET)
    elif by_budget and not _is_full(uses, AGENTS):
        await control.release(tx, row.id)
        await evaluations.note(tx, row.id, WATCHDOG, "release", {"reason": control.BUDGET})


def _words(use: Use) -> str:
    return f"{dollars(use.spent)} of {dollars(use.limit)} USD are spent"


async def look_at_project(db: Database, project: BudgetedProject, due: MutableMapping[str, float]) -> None:
    """The same for a project: its hold is with its spending, and goes with its budget. Raises Unavailable."""
    if time.monotonic() < due.get(project.id, 0.0):
        return
    began = time.monotonic()
    async with db.transaction() as tx:
        spent = await budgets.of_project(tx, project.id)
        uses = _uses(project.budget, spent.agents_usd, spent.judges_usd)
        full = _is_full(uses, AGENTS)
        spend: dict[str, Any] = {
            AGENTS: dollars(spent.agents_usd), JUDGES: dollars(spent.judges_usd),
            "settled_usd": dollars(spent.settled_usd),
            "mean_usd": None if spent.mean_usd is None else dollars(spent.mean_usd),
            "judges_held": _is_full(uses, JUDGES),
            "told": _marks(uses),
        }  # fmt: skip
        if full:
            words = f"the project's budget: {_words(uses[AGENTS])}"
            spend["hold"] = project.spend.get("hold") or await control.hold_value(tx, control.BUDGET, words)
        await _let_judges(tx, project.id, project.spend, spend["judges_held"], project=True)
        for name, use in uses.items():
            if told(project.spend.get("told") or {}, name, use):
                data = {"project_id": project.id, "budget": _detail(name, use)}
                await announce(tx, project.id, HookEvent.EVALUATION_BUDGET, data)
        if spend != project.spend:
            await watching.save_project(tx, project.id, spend)
    due[project.id] = time.monotonic() + _SHARE * (time.monotonic() - began)
    if full and project.budget.at_limit == "stop":
        await _stop(db, project.id)


async def _stop(db: Database, project_id: str, evaluation_id: str | None = None) -> None:
    """Stop what is at work, a hundred runs at a time; the next look finds the rest."""
    async with db.reading() as tx:
        ids = await watching.at_work(tx, evaluation_id=evaluation_id, project_id=project_id)
    for run_id in ids:
        async with db.transaction() as tx:
            await stop(tx, project_id, run_id, StopMode.COLLECT)
