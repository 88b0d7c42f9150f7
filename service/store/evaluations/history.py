"""What runs of agents have taken so far: what estimates rest on."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import RowMapping, text

from service.store.database import Tx

MOST = 500
"""Of each agent, the last so many runs are looked at."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Mean and variance of one run; null where nothing was measured."""

    n: int
    mean: float | None
    variance: float | None
    """Null for fewer than two."""


@dataclass(frozen=True, slots=True)
class Past:
    runs: int
    usd: Sample
    """All attempts, models and services."""
    seconds: Sample
    """Of the agent phase."""
    bytes: float | None
    """Mean size of what was delivered."""


# Finished work of the agents themselves: nothing altered, replayed, driven or stopped.
_PAST = text("""
    SELECT k.agent_id, count(r.id) AS n, count(r.usd) AS usd_n, avg(r.usd) AS usd_mean, var_samp(r.usd) AS usd_variance,
           count(r.wall_s) AS s_n, avg(r.wall_s) AS s_mean, var_samp(r.wall_s) AS s_variance,
           avg(r.deliverable_bytes) FILTER (WHERE r.deliverable_digest IS NOT NULL) AS bytes
    FROM unnest(CAST(:agents AS text[])) AS k(agent_id)
    CROSS JOIN LATERAL (
        SELECT r.id, CAST(r.cost_usd_all_attempts AS float8) AS usd, r.wall_s, r.deliverable_bytes, r.deliverable_digest
        FROM runs r
        WHERE r.project_id = :project_id AND r.agent_id = k.agent_id AND r.phase = 'done'
          AND r.outcome IN ('graded', 'abstained', 'ungraded') AND r.stop_mode IS NULL AND r.replay_of IS NULL
          AND NOT r.flags && CAST(:apart AS text[])
          AND (CAST(:benchmark AS text) IS NULL OR EXISTS (
              SELECT FROM benchmark_items i JOIN benchmarks b ON b.id = i.benchmark_id
              WHERE i.task_id = r.task_id AND b.project_id = r.project_id AND b.name = :benchmark))
        ORDER BY r.created_at DESC LIMIT :most) AS r
    GROUP BY k.agent_id""")


async def past(
    tx: Tx, project_id: str, agents: Sequence[str], benchmark: str | None, apart: Sequence[str]
) -> dict[str, Past]:
    """Return what finished runs of each agent took; agents without any are left out.

    ``benchmark``: only tasks of benchmarks of this name, of whatever version. Runs with a flag of ``apart`` do not count.
    """
    values = {"project_id": project_id, "agents": [*agents], "benchmark": benchmark, "apart": [*apart], "most": MOST}
    rows = (await tx.execute(_PAST, values)).mappings()
    return {row["agent_id"]: _past(row) for row in rows if row["n"]}


def _past(row: RowMapping) -> Past:
    size = row["bytes"]
    return Past(row["n"], _sample(row, "usd"), _sample(row, "s"), None if size is None else float(size))


def _sample(row: RowMapping, name: str) -> Sample:
    return Sample(row[f"{name}_n"], row[f"{name}_mean"], row[f"{name}_variance"])
