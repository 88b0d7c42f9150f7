"""Integrity reports: one per (project, deliverable, version of what makes them), and which of them a job must make."""

from typing import Any

from sqlalchemy import Select, and_, case, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.artifacts import EntryKind
from service.domain.events import EventType, NewEvent
from service.domain.ids import new_id
from service.domain.integrity import VERSION, IntegrityReport, ReportState
from service.store import clock, events
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.notifications import INTEGRITY, RUNS
from service.store.phases import notify, touch
from service.store.rows import IntegrityRow
from service.store.tables import artifacts, integrity_reports, runs

_FINE = (EntryKind.FILE, EntryKind.DIRECTORY)
_MOST = 1000


async def request(tx: Tx, project_id: str, digest: str, *, queued: bool) -> IntegrityRow:
    """Find or create the report of a deliverable under the present version; one that was unavailable is pending again.

    ``queued``: no grading will make it, so a job must. Wakes the makers of reports.
    """
    c = integrity_reports.c
    values = {"id": new_id("itg"), "project_id": project_id, "digest": digest, "version": VERSION, "queued": queued}
    made = insert(integrity_reports).values(values)
    open_ = c.state != ReportState.READY
    again = {
        "state": case((open_, ReportState.PENDING.value), else_=c.state),
        "cause": None,
        "tries": case((c.state == ReportState.UNAVAILABLE, 0), else_=c.tries),
        "queued": or_(c.queued, and_(made.excluded.queued, open_)),
    }
    query = made.on_conflict_do_update(constraint="uq_integrity_reports_once", set_=again).returning(integrity_reports)
    row = IntegrityRow.of((await tx.execute(query)).mappings().one())
    if row.queued:
        await notify(tx, INTEGRITY, row.id)
    return row


async def find(tx: Tx, project_id: str, digest: str) -> IntegrityRow | None:
    """Return the report of a deliverable to show: a finished one before all others, then the present version's."""
    c = integrity_reports.c
    mine = (c.project_id == project_id, c.digest == digest)
    order = ((c.state == ReportState.READY).desc(), (c.version == VERSION).desc(), c.created_at.desc())
    return await _one(tx, select(integrity_reports).where(*mine).order_by(*order).limit(1))


async def present(tx: Tx, project_id: str, digest: str) -> IntegrityRow | None:
    """Return the report of a deliverable under the present version."""
    c = integrity_reports.c
    return await _one(
        tx, select(integrity_reports).where(c.project_id == project_id, c.digest == digest, c.version == VERSION)
    )


async def by_id(tx: Tx, report_id: str) -> IntegrityRow | None:
    return await _one(tx, select(integrity_reports).where(integrity_reports.c.id == report_id))


async def open_ids(tx: Tx) -> list[str]:
    """Return the reports that a job must make, oldest first, at most 1 000."""
    c = integrity_reports.c
    return [*(await tx.execute(select(c.id).where(c.queued).order_by(c.created_at).limit(_MOST))).scalars()]


async def start(tx: Tx, report_id: str) -> IntegrityRow | None:
    """Count a try and return the report as it then is; null if it is gone."""
    c = integrity_reports.c
    query = integrity_reports.update().where(c.id == report_id).values(tries=c.tries + 1).returning(integrity_reports)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else IntegrityRow.of(row)


async def finish(tx: Tx, report_id: str, report: IntegrityReport) -> None:
    """Keep the report; one that is there already stays."""
    await _end(
        tx,
        report_id,
        state=ReportState.READY,
        cause=None,
        problems=report.problems,
        report=report.model_dump(mode="json"),
    )


async def fail(tx: Tx, report_id: str, cause: str) -> None:
    """Say that it could not be made, and stop trying until somebody asks again."""
    await _end(tx, report_id, state=ReportState.UNAVAILABLE, cause=cause, queued=False)


async def unqueue(tx: Tx, report_id: str) -> None:
    await tx.execute(integrity_reports.update().where(integrity_reports.c.id == report_id).values(queued=False))


async def runs_of(tx: Tx, row: IntegrityRow) -> list[str]:
    """Return the runs of the project that delivered this, oldest first, at most 1 000."""
    mine = (runs.c.project_id == row.project_id, runs.c.deliverable_digest == row.digest)
    return [*(await tx.execute(select(runs.c.id).where(*mine).order_by(runs.c.created_at).limit(_MOST))).scalars()]


async def attach(tx: Tx, run_id: str, row: IntegrityRow) -> None:
    """Say on a run what its finished report found: an event, once, and the count of problems. Locks the run."""
    run = await lock_run(tx, run_id)
    if row.report is None or run["deliverable_digest"] != row.digest:
        return
    payload = {"digest": row.digest, "files": len(row.report.files), "problems": row.problems, "version": row.version}
    event = NewEvent(EventType.DELIVERABLE_CHECKED, payload, f"integrity:{row.version}", 0, await clock.now(tx))
    if await events.append(tx, run_id, run["attempt"], None, [event]):
        skipped = select(func.count()).where(artifacts.c.run_id == run_id, artifacts.c.kind.not_in(_FINE))
        total = (await tx.execute(skipped)).scalar_one() + (row.problems or 0)
        await touch(tx, run_id, deliverable_problems=total)
        await notify(tx, RUNS, run_id)


async def drop_unused(tx: Tx, project_id: str, digest: str) -> None:
    """Delete the reports of a deliverable that no run of the project has (any more): they quote its names."""
    c = integrity_reports.c
    used = select(runs.c.id).where(runs.c.project_id == project_id, runs.c.deliverable_digest == digest).exists()
    await tx.execute(integrity_reports.delete().where(c.project_id == project_id, c.digest == digest, ~used))


async def _end(tx: Tx, report_id: str, **columns: Any) -> None:
    c = integrity_reports.c
    mine = (c.id == report_id, c.state != ReportState.READY)
    await tx.execute(integrity_reports.update().where(*mine).values(columns))


async def _one(tx: Tx, query: Select[Any]) -> IntegrityRow | None:
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else IntegrityRow.of(row)
