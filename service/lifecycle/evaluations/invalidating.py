"""Many runs stopped, made void, or taken back, a batch per transaction, within bounded time (NEEDS B17, B18)."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from service.domain.run_states import StopMode
from service.lifecycle.stop import stop
from service.store import invalidations, runs
from service.store.database import Database, Tx
from service.store.evaluations import evaluations
from service.store.invalidations import Kind
from service.store.rows import Json, RunFilter

BATCH = 50
"""Runs of one transaction: workers that want one of them wait no longer than that takes."""
PATIENCE_S = 15.0
"""After so long the answer says that there are more."""
Apply = Callable[[Tx, Sequence[str]], Awaitable[int]]


@dataclass(slots=True)
class Moved:
    matched: int
    """Runs that the filter lets through."""
    changed: int
    """Of them, those that were (``dry_run``: would be) changed."""
    more: bool = False
    """Time was over before all were seen: ask again."""
    evaluations: set[str] = field(default_factory=set[str])


async def count(db: Database, project_id: str, where: RunFilter, kind: Kind) -> Moved:
    """Return what would be changed."""
    async with db.snapshot() as tx:
        return Moved(*await invalidations.count(tx, project_id, where, kind))


async def invalidate(db: Database, project_id: str, where: RunFilter, author: str, reason: str) -> Moved:
    """Make what is done of it void; each evaluation concerned has it in its log. Raises Unavailable."""

    async def apply(tx: Tx, ids: Sequence[str]) -> int:
        return await invalidations.invalidate(tx, ids, author, reason)

    moved = await _each(db, project_id, where, Kind.INVALIDATE, apply)
    return await _noted(db, moved, author, Kind.INVALIDATE, {"runs": moved.changed, "reason": reason})


async def revalidate(db: Database, project_id: str, where: RunFilter, author: str) -> Moved:
    """Take it back: every outcome is again what it was. Raises Unavailable."""

    async def apply(tx: Tx, ids: Sequence[str]) -> int:
        return await invalidations.revalidate(tx, ids, author)

    moved = await _each(db, project_id, where, Kind.REVALIDATE, apply)
    return await _noted(db, moved, author, Kind.REVALIDATE, {"runs": moved.changed})


async def stop_all(db: Database, project_id: str, where: RunFilter, author: str, mode: StopMode) -> Moved:
    """Ask what is not done of it to stop. Raises Unavailable."""

    async def apply(tx: Tx, ids: Sequence[str]) -> int:
        for run_id in ids:
            await stop(tx, project_id, run_id, mode)
        return len(ids)

    moved = await _each(db, project_id, where, Kind.STOP, apply)
    return await _noted(db, moved, author, Kind.STOP, {"runs": moved.changed, "mode": mode})


async def _each(db: Database, project_id: str, where: RunFilter, kind: Kind, apply: Apply) -> Moved:
    async with db.reading() as tx:
        moved = Moved(await runs.count(tx, project_id, where), 0)
    after, end = "", time.monotonic() + PATIENCE_S
    while True:
        async with db.transaction() as tx:
            batch = await invalidations.next_of(tx, project_id, where, kind, after, BATCH)
            if not batch:
                return moved
            moved.changed += await apply(tx, [run_id for run_id, _ in batch])
        moved.evaluations |= {evaluation for _, evaluation in batch if evaluation is not None}
        after = batch[-1][0]
        if time.monotonic() > end:
            moved.more = len(batch) == BATCH
            return moved


async def _noted(db: Database, moved: Moved, author: str, kind: Kind, detail: Json) -> Moved:
    if moved.changed:
        async with db.transaction() as tx:
            for evaluation_id in sorted(moved.evaluations):
                await evaluations.note(tx, evaluation_id, author, kind, detail)
    return moved
