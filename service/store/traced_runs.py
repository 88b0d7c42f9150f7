"""Which finished runs have gone to a collector of traces, and which are next.

Use it as ``from service.store import traced_runs``. Every run that finishes shows up in the feed of changes; a reader
that knows how far it has come looks at what is new only.
"""

from dataclasses import dataclass

from sqlalchemy import func, text

from service.store.database import Tx
from service.store.tables_models import traced_runs as table

LEASE_S = 300.0
"""A claimed run that was not marked by then is anybody's again."""
_DUE = text("""
    WITH head AS MATERIALIZED (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon)
    SELECT head.horizon, due.id FROM head LEFT JOIN LATERAL (
        SELECT r.id FROM projects p
        CROSS JOIN LATERAL (
            SELECT c.resource_id FROM changes c
            WHERE c.project_id = p.id AND c.kind = 'run' AND c.txid >= :since AND c.deleted_at IS NULL) AS new
        JOIN runs r ON r.id = new.resource_id
        WHERE r.phase = 'done' AND r.updated_at > clock_timestamp() - make_interval(secs => :lookback_s)
          AND NOT EXISTS (
              SELECT FROM traced_runs t WHERE t.run_id = r.id
              AND (t.traced_at IS NOT NULL OR t.claimed_at > clock_timestamp() - make_interval(secs => :lease_s)))
        ORDER BY r.updated_at, r.id LIMIT :limit) AS due ON true""")
_CLAIM = text("""
    INSERT INTO traced_runs AS t (run_id) SELECT id FROM runs WHERE id = :run_id
    ON CONFLICT (run_id) DO UPDATE SET claimed_at = clock_timestamp()
    WHERE t.traced_at IS NULL AND t.claimed_at <= clock_timestamp() - make_interval(secs => :lease_s)
    RETURNING run_id""")


@dataclass(frozen=True, slots=True)
class Due:
    run_ids: list[str]
    horizon: int
    """Give it as ``since`` once all of them are dealt with."""


async def due(tx: Tx, since: int, lookback_s: float, limit: int) -> Due:
    """Return finished runs that changed since a horizon (0: ever) and within ``lookback_s``, not traced, oldest first."""
    values = {"since": since, "lookback_s": lookback_s, "limit": limit, "lease_s": LEASE_S}
    rows = (await tx.execute(_DUE, values)).all()
    return Due([row.id for row in rows if row.id is not None], rows[0].horizon)


async def claim(tx: Tx, run_id: str) -> bool:
    """Take a run for this process; False if another one has it, or it is traced or deleted."""
    return (await tx.execute(_CLAIM, {"run_id": run_id, "lease_s": LEASE_S})).first() is not None


async def mark(tx: Tx, run_id: str) -> None:
    """Note that a run's trace was taken, or is given up."""
    await tx.execute(table.update().where(table.c.run_id == run_id).values(traced_at=func.clock_timestamp()))


async def release(tx: Tx, run_id: str) -> None:
    """Give a claimed run back."""
    await tx.execute(table.delete().where(table.c.run_id == run_id, table.c.traced_at.is_(None)))
