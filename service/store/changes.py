"""The feed of changed resources: one row per resource, in the order of the transactions that changed them last.

A transaction that began early may commit late. Readers therefore stop below the oldest transaction that is still open
(the *horizon* of their snapshot): what commits later has a higher number, so nothing is skipped. Prefer short
transactions: an open writer anywhere in the cluster holds everybody's feed back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import RowMapping, text

from service.store.database import Tx
from service.store.rows import Json

KINDS = ("benchmark", "campaign", "evaluation", "grading", "operation", "run")
TOMBSTONES_KEPT = timedelta(days=7)
_BODIES = {
    "run": ("phase", "hold", "outcome", "ended_because", "task_id", "agent_id", "evaluation_id", "sample", "attempt",
            "labels", "flags", "last_seq", "verdict_state", "score", "max_score", "updated_at"),
    "grading": ("run_id", "method", "plan", "primary", "round", "vote", "state", "score", "max_score", "cause",
                "graded_at"),
    "operation": ("kind", "state", "done", "total", "unit", "ended_at"),
    "benchmark": ("name", "version", "digest", "labels"),
    "campaign": ("name", "form", "state", "items", "decided", "labels", "updated_at"),
    "evaluation": ("name", "state", "benchmark_id", "total", "counts", "hold", "labels", "updated_at"),
}  # fmt: skip
_TABLES = {
    "run": "runs", "grading": "gradings", "operation": "operations", "benchmark": "benchmarks", "campaign": "campaigns",
    "evaluation": "evaluations",
}  # fmt: skip


def _joined() -> tuple[str, str]:
    """Return what is selected of the resources' own tables, and how they are joined."""
    columns = [f'{t}."{n}" AS {k}_{n}' for k, t in _TABLES.items() for n in ("revision", *_BODIES[k])]
    joins = [
        f"LEFT JOIN {t} ON page.kind = '{k}' AND {t}.id = page.resource_id AND {t}.project_id = :project_id"
        for k, t in _TABLES.items()
    ]
    return ", ".join(columns), " ".join(joins)


_COLUMNS, _JOINS = _joined()
_READ = text(f"""
    WITH head AS MATERIALIZED (
        SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon,
               pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next_txid,
               (SELECT p.changes_from FROM projects p WHERE p.id = :project_id) AS changes_from,
               EXISTS (SELECT FROM tokens t
                        WHERE t.id = :token_id AND t.revoked_at IS NULL
                          AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())) AS token_good,
               EXISTS (SELECT FROM changes c
                        WHERE c.project_id = :project_id AND c.kind = ANY(:kinds)
                          AND c.txid >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint) AS pending),
    page AS MATERIALIZED (
        SELECT c.kind, c.resource_id, c.txid, c.deleted_at, c.revision FROM changes c
         WHERE c.project_id = :project_id AND c.kind = ANY(:kinds)
           AND (c.txid, c.kind, c.resource_id) > (:txid, :kind, :resource_id)
           AND c.txid < (SELECT horizon FROM head)
           AND (c.deleted_at IS NULL OR (:since > 0 AND c.txid >= :since))
         ORDER BY c.txid, c.kind, c.resource_id LIMIT :limit)
    SELECT head.horizon, head.next_txid, head.changes_from, head.token_good, head.pending,
           page.kind, page.resource_id, page.txid, page.deleted_at, page.revision, {_COLUMNS}
      FROM head LEFT JOIN page ON true {_JOINS}
     ORDER BY page.txid, page.kind, page.resource_id""")  # noqa: S608 - constants only
_HORIZON = text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
_PURGE = text("""
    WITH gone AS (
        DELETE FROM changes WHERE deleted_at < clock_timestamp() - CAST(:kept AS interval) RETURNING project_id, txid)
    UPDATE projects p SET changes_from = greatest(p.changes_from, last.txid + 1)
      FROM (SELECT project_id, max(txid) AS txid FROM gone GROUP BY project_id) AS last
     WHERE p.id = last.project_id""")
# A dump that was restored into another cluster brings numbers that this one has not given out yet.
_RENUMBER = text("""
    WITH lost AS (
        UPDATE changes SET txid = pg_current_xact_id()::text::bigint
         WHERE txid >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint RETURNING project_id)
    UPDATE projects SET changes_from = pg_current_xact_id()::text::bigint
     WHERE id IN (SELECT project_id FROM lost)""")


@dataclass(frozen=True, slots=True)
class Position:
    """How far a reader is: past this (transaction, kind, id)."""

    txid: int = 0
    kind: str = ""
    resource_id: str = ""
    since: int = 0
    """Horizon at which the reading began: tombstones below it never mattered to this reader."""


@dataclass(frozen=True, slots=True)
class Change:
    """A resource as it is now, not as it was when it changed; a tombstone has no body."""

    kind: str
    id: str
    revision: int
    deleted: bool
    body: Json | None
    position: Position


@dataclass(frozen=True, slots=True)
class ChangePage:
    changes: list[Change]
    position: Position
    """Where to go on."""
    full: bool
    """There may be more at once."""
    pending: bool
    """Something has changed that an open transaction still keeps from being told."""
    expired: bool
    """Tombstones between the given position and here may be gone: begin again."""
    token_good: bool


async def read(tx: Tx, project_id: str, token_id: str, kinds: Sequence[str], after: Position, limit: int) -> ChangePage:
    """Return what has changed after a position, in one statement, and whether the token still is good."""
    keys: dict[str, Any] = {"txid": after.txid, "kind": after.kind, "resource_id": after.resource_id}
    keys |= {"since": after.since, "limit": limit}
    keys |= {"project_id": project_id, "token_id": token_id, "kinds": list(kinds)}
    rows = (await tx.execute(_READ, keys)).mappings().all()
    head = rows[0]
    begun = after.since or head["horizon"]
    changes = [_change(row, begun) for row in rows if row["txid"] is not None]
    full = len(changes) == limit
    seen = max(after.txid, after.since)
    return ChangePage(
        changes,
        changes[-1].position if full else _forward(after, Position(head["horizon"], since=begun)),
        full,
        head["pending"],
        0 < seen < head["changes_from"] or after.txid > head["next_txid"],
        head["token_good"],
    )


async def now(tx: Tx) -> Position:
    """Return the position after everything that can be told by now."""
    horizon = (await tx.execute(_HORIZON)).scalar_one()
    return Position(horizon, since=horizon)


async def purge(tx: Tx, kept: timedelta = TOMBSTONES_KEPT) -> None:
    """Take away tombstones older than ``kept``; readers that have not come so far are told to begin again."""
    await tx.execute(_RENUMBER)
    await tx.execute(_PURGE, {"kept": kept})


def _change(row: RowMapping, since: int) -> Change:
    kind, deleted = row["kind"], row["deleted_at"] is not None
    current = row[f"{kind}_revision"]
    body = None if deleted else {name: row[f"{kind}_{name}"] for name in _BODIES[kind]}
    return Change(
        kind,
        row["resource_id"],
        row["revision"] if current is None else current,
        deleted,
        body,
        Position(row["txid"], kind, row["resource_id"], since),
    )


def _forward(before: Position, after: Position) -> Position:
    """Never go back: another process may have looked with a newer snapshot."""
    return after if after.txid >= before.txid else replace(before, since=before.since or after.since)
