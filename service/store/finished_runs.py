"""Who has dealt with which finished runs: traces sent, contamination looked for. Each has a table that says so.

Every run that finishes shows up in the feed of changes; a reader that knows how far it has come looks at what is new only.
"""

from dataclasses import dataclass

from sqlalchemy import text

from service.store.database import Tx

LEASE_S = 300.0
"""A claimed run that was not marked by then is anybody's again."""


@dataclass(frozen=True, slots=True)
class Due:
    run_ids: list[str]
    horizon: int
    """Give it as ``since`` once all of them are dealt with."""


class Ledger:
    """A table with ``run_id``, ``claimed_at`` and the time of being done, ``done``: constants of ours."""

    def __init__(self, table: str, done: str) -> None:
        self._due = text(f"""
            WITH head AS MATERIALIZED (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon)
            SELECT head.horizon, due.id FROM head LEFT JOIN LATERAL (
                SELECT r.id FROM projects p
                CROSS JOIN LATERAL (
                    SELECT c.resource_id FROM changes c
                    WHERE c.project_id = p.id AND c.kind = 'run' AND c.txid >= :since AND c.deleted_at IS NULL) AS new
                JOIN runs r ON r.id = new.resource_id
                WHERE r.phase = 'done' AND r.updated_at > clock_timestamp() - make_interval(secs => :lookback_s)
                  AND NOT EXISTS (
                      SELECT FROM {table} t WHERE t.run_id = r.id
                      AND (t.{done} IS NOT NULL OR t.claimed_at > clock_timestamp() - make_interval(secs => :lease_s)))
                ORDER BY r.updated_at, r.id LIMIT :limit) AS due ON true""")  # noqa: S608 - constants only
        self._claim = text(f"""
            INSERT INTO {table} AS t (run_id) SELECT id FROM runs WHERE id = :run_id
            ON CONFLICT (run_id) DO UPDATE SET claimed_at = clock_timestamp()
            WHERE t.{done} IS NULL AND t.claimed_at <= clock_timestamp() - make_interval(secs => :lease_s)
            RETURNING run_id""")  # noqa: S608 - constants only
        self._mark = text(f"UPDATE {table} SET {done} = clock_timestamp() WHERE run_id = :run_id")  # noqa: S608
        self._release = text(f"DELETE FROM {table} WHERE run_id = :run_id AND {done} IS NULL")  # noqa: S608

    async def due(self, tx: Tx, since: int, lookback_s: float, limit: int) -> Due:
        """Return finished runs that changed since a horizon (0: ever) and within ``lookback_s``, not done, oldest first."""
        values = {"since": since, "lookback_s": lookback_s, "limit": limit, "lease_s": LEASE_S}
        rows = (await tx.execute(self._due, values)).all()
        return Due([row.id for row in rows if row.id is not None], rows[0].horizon)

    async def claim(self, tx: Tx, run_id: str) -> bool:
        """Take a run for this process; False if another one has it, or it is done or deleted."""
        return (await tx.execute(self._claim, {"run_id": run_id, "lease_s": LEASE_S})).first() is not None

    async def mark(self, tx: Tx, run_id: str) -> None:
        """Note that a run is dealt with, or is given up."""
        await tx.execute(self._mark, {"run_id": run_id})

    async def release(self, tx: Tx, run_id: str) -> None:
        """Give a claimed run back."""
        await tx.execute(self._release, {"run_id": run_id})


TRACED = Ledger("traced_runs", "traced_at")
SCANNED = Ledger("contamination_scans", "scanned_at")
