"""Agents by tasks: what became of an evaluation's runs so far, cell by cell, and the runs that stick out (NEEDS B11).

Fractions are as graders gave them: the benchmark's policies, which reports apply, are not in them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import text

from service.domain.run_states import Flag, Phase
from service.store.database import Tx

LISTED = 10
"""Slowest and dearest runs; and silent ones five times as many."""
_AWAY = "ARRAY[" + ", ".join(f"'{f}'" for f in (Flag.CONTROL, Flag.ASSISTED, "preflight")) + "]::text[]"
_WORKING = "(" + ", ".join(f"'{p}'" for p in (Phase.PROVISIONING, Phase.RUNNING, Phase.PAUSED)) + ")"
FRACTION = f"""CASE WHEN r.outcome = 'graded' AND r.max_score > 0 AND r.ended_because IS DISTINCT FROM 'stopped'
    AND NOT r.flags && {_AWAY} THEN r.score / r.max_score END"""
"""Of a run `r`: what counts so far; null for what does not."""
_CELLS = text(f"""
    SELECT agent_id, task_id, phase, outcome, count(*) AS runs, count(fraction) AS counted, sum(fraction) AS points,
           count(*) FILTER (WHERE fraction >= 1) AS passed
    FROM (SELECT r.agent_id, r.task_id, r.phase, r.outcome, {FRACTION} AS fraction FROM runs r
          WHERE r.evaluation_id = :id) AS mine
    GROUP BY agent_id, task_id, phase, outcome""")  # noqa: S608 - constants only
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
    SELECT count(*), coalesce(sum(revision), 0), count(*) FILTER (WHERE phase NOT IN ('queued', 'held', 'done'))
    FROM runs WHERE evaluation_id = :id""")


@dataclass(frozen=True, slots=True)
class Part:
    """The runs of one cell that have the same phase and outcome."""

    agent_id: str
    task_id: str
    phase: str
    outcome: str | None
    runs: int
    counted: int
    """Of them, those with a fraction."""
    points: float | None
    """Sum of the fractions; null: none."""
    passed: int
    """Those with full points."""


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


async def cells(tx: Tx, evaluation_id: str) -> Sequence[Part]:
    """Return the parts of all cells, in no order. The caller checked the project."""
    return [Part(*row) for row in await tx.execute(_CELLS, {"id": evaluation_id})]


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


async def fingerprint(tx: Tx, evaluation_id: str) -> tuple[str, bool]:
    """Return a text that differs whenever a run of it does, and whether some are at work."""
    row = (await tx.execute(_FINGERPRINT, {"id": evaluation_id})).one()
    return f"{row[0]}-{row[1]}", row[2] > 0
