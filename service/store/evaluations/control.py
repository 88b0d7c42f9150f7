"""Holds of evaluations and their agents, and the queued runs that follow them into phase ``held`` and back.

A hold of the whole is in the evaluation's row, one of an agent in that agent's; claims heed both at once (gates). The runs'
phase follows in batches. Nothing of it consumes an attempt.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import RowMapping, func, select, text

from service.domain.cleaning import clean_json
from service.domain.run_states import Phase
from service.store.clock import now
from service.store.database import Tx
from service.store.evaluations import evaluations as rows
from service.store.evaluations.gates import BUDGET, EVALUATION_STOPPED, GATES
from service.store.holds import locked, queue_again
from service.store.notifications import QUEUE
from service.store.phases import change_phase, notify
from service.store.rows import Json
from service.store.rows_evaluations import EvaluationRow
from service.store.tables import agents
from service.store.tables_evaluations import evaluation_agents
from service.store.tables_models import models

STOP_RULE = "stop_rule"
EVALUATION_HELD = "evaluation_held"
AGENT_HELD = "agent_held"
REASONS = (STOP_RULE, EVALUATION_HELD, AGENT_HELD, BUDGET, EVALUATION_STOPPED)
AT_ONCE = 200
"""Runs that one transaction moves."""
_OURS = "(" + ", ".join(f"'{reason}'" for reason in REASONS) + ")"
_PROJECT_FULL = "p.budget ->> 'agents_usd' IS NOT NULL AND p.spend ? 'hold'"
_STUCK = text(f"""
    WITH {GATES}
    SELECT r.id, coalesce(g.evaluation_hold, g.agent_hold) AS hold, r.priority, r.queued_at
    FROM gates g JOIN runs r ON r.evaluation_id = g.evaluation_id AND r.agent_id = g.agent_id
    WHERE g.held AND r.phase = 'queued' AND r.stop_requested_at IS NULL
    UNION ALL
    SELECT r.id, p.spend -> 'hold', r.priority, r.queued_at FROM projects p JOIN runs r ON r.project_id = p.id
    WHERE {_PROJECT_FULL} AND r.phase = 'queued' AND r.stop_requested_at IS NULL
    ORDER BY priority DESC, queued_at, id LIMIT {AT_ONCE}""")  # noqa: S608 - constants only
_FREED = text(f"""
    WITH {GATES}
    SELECT r.id FROM runs r JOIN projects p ON p.id = r.project_id
    LEFT JOIN gates g ON g.evaluation_id = r.evaluation_id AND g.agent_id = r.agent_id
    WHERE r.phase = 'held' AND r.hold ->> 'reason' IN {_OURS} AND NOT coalesce(g.held, false) AND NOT ({_PROJECT_FULL})
    ORDER BY r.priority DESC, r.queued_at, r.id LIMIT {AT_ONCE}""")  # noqa: S608 - constants only
# Whoever changes a run writes its evaluation's row last, so runs that somebody has just now are left alone, not waited for.
_PRIORITY = text("""
    UPDATE runs SET priority = :priority, revision = revision + 1, updated_at = clock_timestamp() WHERE id IN (
        SELECT id FROM runs WHERE evaluation_id = :id AND phase IN ('queued', 'held') AND priority <> :priority
        FOR NO KEY UPDATE SKIP LOCKED)""")


async def parts(tx: Tx, evaluation_id: str) -> Sequence[RowMapping]:
    """Return of each agent its ``agent_id``, ``label``, ``model``, ``provider`` (null where there is none) and ``hold``."""
    model = agents.c.spec["model"].astext
    query = (
        select(
            evaluation_agents.c.agent_id, agents.c.label, model.label("model"), evaluation_agents.c.hold,
            models.c.spec["provider"].astext.label("provider"),
        )
        .join(agents, agents.c.id == evaluation_agents.c.agent_id)
        .outerjoin(models, (models.c.project_id == agents.c.project_id) & (models.c.name == model))
        .where(evaluation_agents.c.evaluation_id == evaluation_id)
        .order_by(evaluation_agents.c.position)
    )  # fmt: skip
    return (await tx.execute(query)).mappings().all()


async def hold(
    tx: Tx, evaluation_id: str, reason: str, detail: str, *, agent_ids: Collection[str] | None = None, **more: Any
) -> EvaluationRow:
    """Hold the evaluation, or these agents in it; what held them before is replaced. ``more`` is kept with it."""
    value = await _value(tx, reason, detail, more)
    if agent_ids is None:
        return await rows.change(tx, evaluation_id, hold=value)
    changed = await rows.change(tx, evaluation_id)
    await tx.execute(evaluation_agents.update().where(*_these(evaluation_id, agent_ids)).values(hold=value))
    return changed


async def release(tx: Tx, evaluation_id: str, *, agent_ids: Collection[str] | None = None) -> EvaluationRow:
    """Take the hold away. Stop rules of agents that are released look at what ends from now on."""
    if agent_ids is None:
        changed = await rows.change(tx, evaluation_id, hold=None)
    else:
        changed = await rows.change(tx, evaluation_id)
        values = {"hold": None, "rules_from": func.clock_timestamp()}
        await tx.execute(evaluation_agents.update().where(*_these(evaluation_id, agent_ids)).values(values))
    await notify(tx, QUEUE, evaluation_id)
    return changed


def _these(evaluation_id: str, agent_ids: Collection[str]) -> tuple[Any, ...]:
    return evaluation_agents.c.evaluation_id == evaluation_id, evaluation_agents.c.agent_id.in_([*agent_ids])


async def hold_value(tx: Tx, reason: str, detail: str) -> Json:
    return await _value(tx, reason, detail, {})


async def _value(tx: Tx, reason: str, detail: str, more: Mapping[str, Any]) -> Json:
    return clean_json({"reason": reason, "detail": detail, "since": (await now(tx)).isoformat(), **more})


async def set_priority(tx: Tx, evaluation_id: str, priority: int) -> int:
    """Give the runs that have not begun another priority; return how many. Call it before the evaluation's row is written."""
    return (await tx.execute(_PRIORITY, {"id": evaluation_id, "priority": priority})).rowcount


async def hold_runs(tx: Tx) -> list[str]:
    """Hold queued runs whose evaluation, agent or project is held, at most ``AT_ONCE``; return their ids."""
    held: list[str] = []
    for row in (await tx.execute(_STUCK)).mappings().all():
        run = await locked(tx, row["id"], Phase.QUEUED)
        if run is not None:
            await change_phase(tx, run, Phase.HELD, hold=_of_run(row["hold"]))
            held.append(row["id"])
    return held


async def release_runs(tx: Tx) -> list[str]:
    """Queue again, in their order, runs that nothing of it holds any more, at most ``AT_ONCE``; return their ids."""
    return await queue_again(tx, (await tx.execute(_FREED)).scalars().all())


def _of_run(hold_: Mapping[str, Any]) -> Json:
    return {name: hold_.get(name) for name in ("reason", "detail", "since")}
