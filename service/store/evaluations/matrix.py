"""Agents by tasks: what became of an evaluation's runs so far, cell by cell, and the runs that stick out (NEEDS B11).

Fractions are as graders gave them: the benchmark's policies, which reports apply, are not in them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import text

from service.domain.run_states import Flag, Outcome, Phase
from service.store.database import Tx

LISTED = 10
"""Slowest and dearest runs; and silent ones five times as many."""
_AWAY = "ARRAY[" + ", ".join(f"'{f}'" for f in (Flag.CONTROL, Flag.ASSISTED, "preflight")) + "]::text[]"
_WORKING = "(" + ", ".join(f"'{p}'" for p in (Phase.PROVISIONING, Phase.RUNNING, Phase.PAUSED)) + ")"
FRACTION = f"""CASE WHEN r.outcome = 'graded' AND r.max_score > 0 AND r.ended_because IS DISTINCT FROM 'stopped'
    AND NOT r.flags && {_AWAY} THEN r.score / r.max_score END"""
"""Of a run `r`: what counts so far; null for what does not."""


def _object(column: str, values: Iterable[str]) -> str:
    """Return SQL for the text of an object of those counts that are not 0."""
    parts = ", ".join(f"CASE WHEN {column}_{v} > 0 THEN '\"{v}\":' || {column}_{v} END" for v in values)
    return f"'{{' || concat_ws(',', {parts}) || '}}'"


def _counts(column: str, values: Iterable[str]) -> str:
    return ", ".join(f"count(*) FILTER (WHERE r.{column} = '{v}') AS {column}_{v}" for v in values)


# The cells of an agent are one text: thousands of rows would cost the API more than the database takes to write them. Beside
# them the sums over its tasks that the interval of its mean needs.
_ROWS = text(f"""
    WITH agents AS (SELECT agent_id, row_number() OVER (ORDER BY position, agent_id) - 1 AS place
                    FROM evaluation_agents WHERE evaluation_id = :id),
    tasks AS (SELECT task_id, row_number() OVER (ORDER BY position, task_id) - 1 AS place
              FROM evaluation_tasks WHERE evaluation_id = :id),
    cells AS (
        SELECT r.agent_id, r.task_id, count(*) AS runs, count(r.fraction) AS counted, sum(r.fraction) AS points,
               count(*) FILTER (WHERE r.fraction >= 1) AS passed, sum(r.revision) AS revisions, {_counts("phase", Phase)}, {_counts("outcome", Outcome)}
        FROM (SELECT r.agent_id, r.task_id, r.phase, r.outcome, r.revision, {FRACTION} AS fraction FROM runs r
              WHERE r.evaluation_id = :id) AS r
        GROUP BY r.agent_id, r.task_id)
    SELECT a.agent_id, sum(runs)::bigint, sum(revisions)::bigint, sum(runs - phase_queued - phase_held - phase_done)::bigint,
           sum(counted)::bigint, count(points), sum(points), sum(passed)::bigint, sum(points * points),
           sum(points * counted), sum(CASE WHEN counted > 0 THEN counted * counted END)::float8,
           string_agg('[' || concat_ws(',', a.place, t.place, runs, counted,
                      coalesce(round((points / nullif(counted, 0))::numeric, 6)::text, 'null'),
                      {_object("phase", Phase)}, {_object("outcome", Outcome)}) || ']', ',' ORDER BY t.place)
    FROM cells c JOIN agents a ON a.agent_id = c.agent_id JOIN tasks t ON t.task_id = c.task_id
    GROUP BY a.agent_id, a.place ORDER BY a.place""")  # noqa: S608 - constants only
_STANDING_OUT = text(f"""
    WITH mine AS MATERIALIZED (
        SELECT r.id, r.agent_id, r.task_id, r.phase, r.cost_usd_all_attempts AS cost_usd,
               coalesce(r.wall_s, CASE WHEN r.phase IN {_WORKING} THEN extract(epoch FROM clock_timestamp() - r.started_at) END)
                   AS seconds,
               CASE WHEN r.phase IN {_WORKING} THEN extract(epoch FROM clock_timestamp() - coalesce(r.last_event_at, r.started_at))
               END AS silent_s
        FROM runs r WHERE r.evaluation_id = :id)
    (SELECT 'slowest' AS list, * FROM mine WHERE seconds IS NOT NULL ORDER BY seconds DESC, id LIMIT {LISTED})
    UNION ALL
    (SELECT 'dearest', * FROM mine WHERE cost_usd IS NOT NULL ORDER BY cost_usd DESC, id LIMIT {LISTED})
    UNION ALL
    (SELECT 'silent', * FROM mine WHERE silent_s > :silent_s ORDER BY silent_s DESC, id LIMIT {5 * LISTED})""")  # noqa: S608 - constants only
_FINGERPRINT = text("""
    SELECT count(*), coalesce(sum(revision), 0)::bigint, count(*) FILTER (WHERE phase NOT IN ('queued', 'held', 'done'))
    FROM runs WHERE evaluation_id = :id""")


@dataclass(frozen=True, slots=True)
class AgentRow:
    """What one agent's cells come to; sums are over its tasks that have a run that counts, and null without one."""

    agent_id: str
    runs: int
    revisions: int
    """Their sum."""
    at_work: int
    counted: int
    tasks: int
    points: float | None
    passed: int
    """Runs with full points."""
    points_squared: float | None
    points_by_counted: float | None
    counted_squared: float | None
    cells: str
    """JSON arrays, separated by commas: places of agent and task from 0, runs, those that count, the mean of their fractions,
    runs by phase, runs by outcome."""


@dataclass(frozen=True, slots=True)
class StandingOut:
    list: str
    """slowest | dearest | silent"""
    run_id: str
    agent_id: str
    task_id: str
    phase: str
    seconds: float | None
    """Of the agent phase so far."""
    cost_usd: Decimal | None
    """All attempts."""
    silent_s: float | None


async def agent_rows(tx: Tx, evaluation_id: str) -> Sequence[AgentRow]:
    """Return the agents that have runs, in their order. The caller checked the project."""
    return [AgentRow(*row) for row in await tx.execute(_ROWS, {"id": evaluation_id})]


async def standing_out(tx: Tx, evaluation_id: str, silent_s: float) -> Sequence[StandingOut]:
    """Return the slowest and the dearest runs, and those at work that said nothing for longer than ``silent_s`` seconds."""
    found = (await tx.execute(_STANDING_OUT, {"id": evaluation_id, "silent_s": silent_s})).mappings()
    return [
        StandingOut(
            r["list"], r["id"], r["agent_id"], r["task_id"], r["phase"],
            _number(r["seconds"]), r["cost_usd"], _number(r["silent_s"]),
        )
        for r in found
    ]  # fmt: skip


def _number(value: Decimal | float | None) -> float | None:
    return None if value is None else round(float(value), 3)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Of all runs of an evaluation: it differs whenever one of them does."""

    runs: int
    revisions: int
    at_work: int


async def fingerprint(tx: Tx, evaluation_id: str) -> Fingerprint:
    """Return it without the cells."""
    return Fingerprint(*(await tx.execute(_FINGERPRINT, {"id": evaluation_id})).one())


def fingerprint_of(rows: Sequence[AgentRow]) -> Fingerprint:
    """Return the same of what was read anyway."""
    return Fingerprint(sum(r.runs for r in rows), sum(r.revisions for r in rows), sum(r.at_work for r in rows))
