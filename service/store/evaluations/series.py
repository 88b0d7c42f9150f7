"""What an evaluation came to in the course of time, by agent, in steps (NEEDS D10)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import text

from service.store.database import Tx
from service.store.evaluations.matrix import FRACTION

# A run is in the step in which it was done. Earned is a task's price, once, for a run with full points.
_STEPS = text(f"""
    SELECT CASE WHEN :by_agent THEN agent_id END AS agent_id, step, count(*) AS done,
           count(*) FILTER (WHERE outcome = 'graded') AS graded, count(fraction) AS counted, coalesce(sum(fraction), 0) AS points,
           coalesce(sum(price_usd) FILTER (WHERE fraction >= 1), 0) AS earned_usd, coalesce(sum(cost_usd), 0) AS spend_usd
    FROM (SELECT r.agent_id, r.outcome, {FRACTION} AS fraction, (t.manifest -> 'price' ->> 'usd')::numeric AS price_usd,
                 r.cost_usd_all_attempts AS cost_usd,
                 greatest(0, floor(extract(epoch FROM coalesce(r.graded_at, r.ended_at, r.updated_at) - :began) / :step_s))::bigint
                     AS step
          FROM runs r JOIN tasks t ON t.id = r.task_id WHERE r.evaluation_id = :id AND r.phase = 'done'
            AND r.outcome IS DISTINCT FROM 'invalidated') AS mine
    GROUP BY 1, 2 ORDER BY 1, 2""")  # noqa: S608 - constants only


@dataclass(frozen=True, slots=True)
class Step:
    """What was done within one step."""

    agent_id: str | None
    """Null: of all agents."""
    step: int
    """From 0."""
    done: int
    graded: int
    counted: int
    points: float
    earned_usd: Decimal
    spend_usd: Decimal


async def steps(
    tx: Tx, evaluation_id: str, began: datetime, step_s: float, *, by_agent: bool
) -> Sequence[Step]:  # fmt: skip
    """Return the steps in which something was done, in order. The caller checked the project."""
    values = {"id": evaluation_id, "began": began, "step_s": step_s, "by_agent": by_agent}
    return [Step(*row) for row in await tx.execute(_STEPS, values)]


async def last_change(tx: Tx, evaluation_id: str) -> datetime | None:
    """Return when a run of it was done last; null: none is."""
    query = text("""SELECT max(coalesce(graded_at, ended_at, updated_at)) FROM runs
        WHERE evaluation_id = :id AND phase = 'done'""")
    return (await tx.execute(query, {"id": evaluation_id})).scalar_one()
