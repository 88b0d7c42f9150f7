"""The first step of grading: the integrity report of the sealed deliverable, once per deliverable and version.

Called by ``grade`` before a method sees anything, and by workers.integrity for deliverables that nothing grades. It never
holds up or alters a verdict: what cannot be made is ``unavailable`` with a cause, and made later when somebody asks.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

import structlog

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.errors import Unavailable
from service.domain.integrity import IntegrityReport, ReportState
from service.evidence.integrity.report import ReportUnavailable, make_report
from service.sandboxes.rooms import Rooms
from service.store import artifacts, integrity, runs
from service.store.blobs import BlobStore
from service.store.database import Database, Tx, retrying
from service.store.paging import MAX_LIMIT
from service.store.rows import ArtifactRow, IntegrityRow

PATIENCE_S = 120.0
"""Longest that a grading waits for its report."""
JOB_PATIENCE_S = 900.0
MAX_TRIES = 5
"""Starts after which a deliverable is taken to end whoever looks at it."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_making: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class ReportContext:
    db: Database
    blobs: BlobStore
    rooms: Rooms | None
    """Null where this machine has no engine: only what needs no opening can then be reported."""
    database_patience_s: float = 600.0


async def report_for_run(ctx: ReportContext, project_id: str, run_id: str, digest: str) -> IntegrityReport | None:
    """Find or make the report of a run's deliverable and say on the run what it found; null if it is unavailable.

    Raises Unavailable (database away for long).
    """

    async def find(tx: Tx) -> IntegrityRow:
        found = await integrity.present(tx, project_id, digest)
        return found or await integrity.request(tx, project_id, digest, queued=False)

    row = await retrying(ctx.db, find, ctx.database_patience_s)
    async with _making.setdefault(row.id, asyncio.Lock()):
        row = await _made(ctx, row, run_id, PATIENCE_S)
    if row is None or row.report is None:
        return None
    ready = row

    async def say(tx: Tx) -> None:
        await integrity.attach(tx, run_id, ready)

    await retrying(ctx.db, say, ctx.database_patience_s)
    return row.report


async def make_queued(ctx: ReportContext, report_id: str) -> None:
    """Make a report that was asked for and say on each run that delivered this what it found.

    Raises Unavailable (database away for long).
    """

    async def find(tx: Tx) -> tuple[IntegrityRow | None, list[str]]:
        row = await integrity.by_id(tx, report_id)
        return row, await integrity.runs_of(tx, row) if row else []

    row, run_ids = await retrying(ctx.db, find, ctx.database_patience_s)
    if row is not None and run_ids:
        async with _making.setdefault(row.id, asyncio.Lock()):
            row = await _made(ctx, row, run_ids[0], JOB_PATIENCE_S)

    async def say(tx: Tx) -> None:
        for run_id in await integrity.runs_of(tx, row) if row and row.report else []:
            await integrity.attach(tx, run_id, row)  # pyright: ignore[reportArgumentType]
        await integrity.unqueue(tx, report_id)

    await retrying(ctx.db, say, ctx.database_patience_s)


async def entries_of(tx: Tx, run_id: str) -> list[ArtifactEntry]:
    """Return everything in the run's deliverable, what could not be sealed included."""
    entries: list[ArtifactEntry] = []
    cursor: int | None = 0
    while cursor is not None:
        page = await artifacts.list(tx, run_id, cursor, MAX_LIMIT)
        entries += [_entry(a) for a in page.items]
        cursor = int(page.next[0]) if page.next else None
    return entries


async def _made(ctx: ReportContext, row: IntegrityRow, run_id: str, patience_s: float) -> IntegrityRow | None:
    """Return the report as it is after at most one more try; null if it was deleted."""

    async def start(tx: Tx) -> tuple[IntegrityRow | None, list[ArtifactEntry]]:
        now = await integrity.by_id(tx, row.id)
        if now is None or now.state is not ReportState.PENDING:
            return now, []
        if (await runs.load(tx, run_id)).deliverable_digest != row.digest:
            return None, []
        return await integrity.start(tx, row.id), await entries_of(tx, run_id)

    started, entries = await retrying(ctx.db, start, ctx.database_patience_s)
    if started is None or started.state is not ReportState.PENDING:
        return started
    found = "checker_crashed" if started.tries > MAX_TRIES else await _try(ctx, entries, patience_s)

    async def keep(tx: Tx) -> IntegrityRow | None:
        if isinstance(found, str):
            await integrity.fail(tx, row.id, found)
        else:
            await integrity.finish(tx, row.id, found)
        return await integrity.by_id(tx, row.id)

    return await retrying(ctx.db, keep, ctx.database_patience_s)


async def _try(ctx: ReportContext, entries: Sequence[ArtifactEntry], patience_s: float) -> IntegrityReport | str:
    """Return the report, or why there is none."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(patience_s):
            report = await make_report(entries, ctx.blobs.path, ctx.rooms)
        took_s = round(time.monotonic() - began, 3)
        log.info("integrity_report", files=len(report.files), problems=report.problems, took_s=took_s)
        return report
    except ReportUnavailable as error:
        log.warning("integrity_unavailable", cause=error.type, detail=error.detail)
        return error.type
    except TimeoutError:
        return "took_too_long"
    except Unavailable:
        raise
    except Exception:  # a report is never worth a verdict: a bug of ours in making it must not end as one
        log.exception("integrity_bug")
        return "checker_error"


def _entry(row: ArtifactRow) -> ArtifactEntry:
    return ArtifactEntry(
        row.path, EntryKind(row.kind), row.size_bytes, row.sha256, row.mime, row.link_target, row.mtime
    )
