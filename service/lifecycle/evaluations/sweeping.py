"""What the watchdog does for evaluations every few seconds: stop rules, dollars, and the runs that follow holds."""

from dataclasses import dataclass, field

import structlog

from service.domain.stop_rules import Broken, decide
from service.lifecycle.evaluations.control import note_hold
from service.lifecycle.evaluations.spending import look_at_evaluation, look_at_project
from service.store.database import Database, Tx
from service.store.evaluations import control, evaluations, preflights, rules, watching
from service.store.rows_evaluations import ListedEvaluation

WATCHDOG = "watchdog"
BATCHES = 5
"""Of runs that one sweep moves into or out of phase ``held``."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class Memory:
    """Of one process: what it need not look at again."""

    looked_at: dict[str, int] = field(default_factory=dict[str, int])
    """Evaluation → revision of which its ended runs are known."""
    money_due: dict[str, float] = field(default_factory=dict[str, float])
    """Evaluation or project → monotonic time before which its dollars are not summed again."""


async def sweep(db: Database, memory: Memory) -> None:
    """Look at all evaluations that are under way. Raises Unavailable; what is not done then is done the next time."""
    async with db.transaction() as tx:
        abandoned = await preflights.abandon(tx)
    for evaluation_id in abandoned:
        log.warning("preflight_abandoned", evaluation=evaluation_id)
    async with db.reading() as tx:
        found, budgeted = await watching.under_way(tx), await watching.with_budget(tx)
    for row in found:
        if memory.looked_at.get(row.id) == row.revision:
            continue
        await _apply_rules(db, row)
        memory.looked_at[row.id] = row.revision
    for row in found:
        await look_at_evaluation(db, row, memory.money_due)
    for project in budgeted:
        await look_at_project(db, project, memory.money_due)
    _forget(memory, {row.id for row in found} | {project.id for project in budgeted})
    await _follow(db)


def _forget(memory: Memory, known: set[str]) -> None:
    memory.looked_at = {id_: revision for id_, revision in memory.looked_at.items() if id_ in known}
    memory.money_due = {id_: due for id_, due in memory.money_due.items() if id_ in known}


async def _apply_rules(db: Database, row: ListedEvaluation) -> None:
    async with db.reading() as tx:
        suspects = await _broken(tx, row)
    if not suspects:
        return
    async with db.transaction() as tx:
        await evaluations.turn(tx, row.id)
        fresh = await evaluations.load(tx, row.id)
        if fresh is None:
            return
        for agent_id, broken in (await _broken(tx, fresh)).items():  # nobody has released it meanwhile
            await _hold(tx, row.id, agent_id, broken)


async def _broken(tx: Tx, row: ListedEvaluation) -> dict[str, Broken]:
    if not row.stop_rules.enabled:
        return {}
    found = {
        agent_id: decide(row.stop_rules, ended.first, ended.last)
        for agent_id, ended in (await rules.ended(tx, row.id, row.stop_rules)).items()
    }
    return {agent_id: broken for agent_id, broken in found.items() if broken is not None}


async def _hold(tx: Tx, evaluation_id: str, agent_id: str, broken: Broken) -> None:
    more = {
        "rule": broken.rule, "bad": broken.bad, "of": broken.of,
        "causes": broken.causes, "run_ids": [*broken.run_ids], "by": WATCHDOG,
    }  # fmt: skip
    changed = await control.hold(tx, evaluation_id, control.STOP_RULE, broken.detail, agent_ids=[agent_id], **more)
    said = {"reason": control.STOP_RULE, "detail": broken.detail, "agents": [agent_id], **more}
    await note_hold(tx, changed, WATCHDOG, said)
    log.warning("agent_held", evaluation=evaluation_id, agent=agent_id, bad=broken.bad, of=broken.of)


async def _follow(db: Database) -> None:
    for move in (control.hold_runs, control.release_runs):
        for _ in range(BATCHES):
            async with db.transaction() as tx:
                moved = await move(tx)
            if len(moved) < control.AT_ONCE:
                break
