"""Where a queued run stands and why it is not at work: worked out when it is asked for, and stored nowhere."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import RowMapping, text

from service.domain.placement import Capacity, Share, why_waiting
from service.store import capacity
from service.store.claims import LIVE, TURN
from service.store.database import Tx
from service.store.evaluations import budgets, gates
from service.store.evaluations.gates import BUDGET
from service.store.rows import Json

COUNTED = 1000
"""Per project, how far down the queue places are counted; further back the place is null."""
_PLACES = text(f"""
    WITH live AS (SELECT project_id, count(*) AS n FROM runs WHERE phase IN {LIVE} AND phase <> 'done' GROUP BY 1),
    placed AS (
        SELECT c.id, c.place, row_number() OVER (ORDER BY {TURN}) AS position
        FROM projects p LEFT JOIN live ON live.project_id = p.id
        CROSS JOIN LATERAL (
            SELECT r.id, r.priority, r.queued_at,
                   row_number() OVER (ORDER BY r.priority DESC, r.queued_at, r.id) AS place
            FROM runs r WHERE r.project_id = p.id AND r.phase = 'queued' AND r.stop_requested_at IS NULL
            ORDER BY r.priority DESC, r.queued_at, r.id LIMIT {COUNTED}) AS c)
    SELECT r.id, r.environment, r.kit, r.runtime, r.limits, r.queued_at, r.evaluation_id, r.agent_id, p.untrusted, p.max_runs,
           coalesce(live.n, 0) AS live, placed.place, placed.position
    FROM runs r JOIN projects p ON p.id = r.project_id LEFT JOIN live ON live.project_id = p.id
    LEFT JOIN placed ON placed.id = r.id
    WHERE r.id = ANY(CAST(:ids AS text[])) AND r.phase = 'queued'""")  # noqa: S608 - constants only


# Those that wait for something else may need an image just as well: it is on its way, or not there at all.
_NEEDED = text("""
    SELECT image, count(*) AS n FROM runs r CROSS JOIN LATERAL unnest(ARRAY[r.environment, r.kit]) AS image
    WHERE r.phase IN ('queued', 'held') AND image IS NOT NULL
    GROUP BY image ORDER BY n DESC, image LIMIT 100""")


async def images_needed(tx: Tx) -> Mapping[str, int]:
    """Return the images that waiting runs of all projects need, at most 100, and how many runs need each."""
    return {row.image: row.n for row in await tx.execute(_NEEDED)}


async def holds_of(tx: Tx, run_ids: Sequence[str]) -> dict[str, Json]:
    """Return, for those of the runs that are queued, ``{reason, detail, position, project_position, since}``.

    ``position`` 1 is next in the order of all projects, ``project_position`` 1 next in its own project's. The caller
    has checked that the runs are its project's.
    """
    if not run_ids:
        return {}
    rows = (await tx.execute(_PLACES, {"ids": [*run_ids]})).mappings().all()
    hosts = await capacity.of_all(tx) if rows else []
    evaluations = {row["evaluation_id"] for row in rows if row["evaluation_id"] is not None}
    kept = await gates.of(tx, [*evaluations]) if evaluations else {}
    spent = await budgets.spent(tx, [e for e, _ in kept]) if any(g["budget_usd"] for g in kept.values()) else {}
    return {row["id"]: _hold(row, hosts, _kept(row, kept, spent)) for row in rows}


def _kept(
    row: RowMapping, kept: Mapping[tuple[str, str], RowMapping], spent: Mapping[str, budgets.Spent]
) -> tuple[str, str] | None:
    """Return what its evaluation keeps the run back for; null: nothing."""
    gate = kept.get((row["evaluation_id"], row["agent_id"]))
    if gate is None:
        return None
    held = gate["evaluation_hold"] or gate["agent_hold"]
    if held is not None:
        return held["reason"], held["detail"]
    used = spent.get(row["evaluation_id"])
    if (
        gate["budget_usd"] is not None
        and used is not None
        and used.agents_usd + used.committed_usd >= gate["budget_usd"]
    ):
        return BUDGET, "what is spent and what runs at work may still spend reach the evaluation's budget"
    return gates.why_full(gate)


def _hold(row: RowMapping, hosts: list[Capacity], kept: tuple[str, str] | None) -> dict[str, Any]:
    reason, detail = kept or why_waiting(hosts, capacity.need_of(row), Share(int(row["live"]), row["max_runs"]))
    return {
        "reason": str(reason),
        "detail": detail,
        "position": row["position"],
        "project_position": row["place"],
        "since": row["queued_at"],
    }
