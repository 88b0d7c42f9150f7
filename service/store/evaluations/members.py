"""Agents and tasks of an evaluation. The caller has checked the project."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select, text

from service.store.database import Tx
from service.store.many_rows import arrays_of, insert_of_many
from service.store.rows_evaluations import EvaluationTaskRow, MemberRow
from service.store.tables import agents
from service.store.tables_evaluations import evaluation_agents, evaluation_tasks

_AGENT = ("evaluation_id", "agent_id", "position", "samples", "settings")
_TASK = ("evaluation_id", "task_id", "position", "item_key", "status")
_ADD_AGENTS = insert_of_many(evaluation_agents, _AGENT)
_ADD_TASKS = insert_of_many(evaluation_tasks, _TASK)


def _added(counts: str) -> str:
    """Return SQL for ``counts`` with k.n more runs in phase k.phase."""
    return f"""{counts} || jsonb_build_object('phase', coalesce({counts} -> 'phase', '{{}}'::jsonb) || jsonb_build_object(
        k.phase, coalesce(({counts} -> 'phase' ->> k.phase)::bigint, 0) + k.n))"""


_COUNT_WHOLE = text(f"""
    UPDATE evaluations e SET total = total + k.n, counts = {_added("e.counts")}, updated_at = clock_timestamp()
    FROM (SELECT CAST(:phase AS text) AS phase, CAST(:n AS bigint) AS n) AS k WHERE e.id = :evaluation_id""")  # noqa: S608 - constants only
_COUNT_AGENTS = text(f"""
    UPDATE evaluation_agents a SET total = total + k.n, counts = {_added("a.counts")}
    FROM (SELECT CAST(:phase AS text) AS phase, *
          FROM unnest(CAST(:agents AS text[]), CAST(:ns AS bigint[])) AS u(agent_id, n)) AS k
    WHERE a.evaluation_id = :evaluation_id AND a.agent_id = k.agent_id""")  # noqa: S608 - constants only


async def add_agents(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert members; each has the keys evaluation_id, agent_id, position, samples, settings."""
    await tx.execute(_ADD_AGENTS, arrays_of(evaluation_agents, _AGENT, rows))


async def add_tasks(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert tasks; each has the keys evaluation_id, task_id, position, item_key, status."""
    await tx.execute(_ADD_TASKS, arrays_of(evaluation_tasks, _TASK, rows))


async def agents_of(tx: Tx, evaluation_id: str) -> list[MemberRow]:
    """Return the agents in their order."""
    query = (
        select(evaluation_agents, agents.c.label.label("agent_label"))
        .join(agents, agents.c.id == evaluation_agents.c.agent_id)
        .where(evaluation_agents.c.evaluation_id == evaluation_id)
        .order_by(evaluation_agents.c.position, evaluation_agents.c.agent_id)
    )
    return [MemberRow.of(row) for row in (await tx.execute(query)).mappings()]


async def tasks_of(tx: Tx, evaluation_id: str) -> list[EvaluationTaskRow]:
    """Return the tasks in the benchmark's order."""
    query = select(evaluation_tasks).where(evaluation_tasks.c.evaluation_id == evaluation_id)
    rows = await tx.execute(query.order_by(evaluation_tasks.c.position, evaluation_tasks.c.task_id))
    return [EvaluationTaskRow.of(row) for row in rows.mappings()]


async def next_position(tx: Tx, evaluation_id: str) -> int:
    """Return where another agent would come."""
    last = func.coalesce(func.max(evaluation_agents.c.position), -1)
    query = select(last).where(evaluation_agents.c.evaluation_id == evaluation_id)
    return int((await tx.execute(query)).scalar_one()) + 1


async def count_inserted(tx: Tx, evaluation_id: str, phase: str, by_agent: Mapping[str, int]) -> None:
    """Count runs that were inserted in this phase: the evaluation first, then the agents. No run may be touched after."""
    values: dict[str, Any] = {"evaluation_id": evaluation_id, "phase": phase, "n": sum(by_agent.values())}
    if not values["n"]:
        return
    await tx.execute(_COUNT_WHOLE, values)
    await tx.execute(_COUNT_AGENTS, values | {"agents": [*by_agent], "ns": [*by_agent.values()]})
