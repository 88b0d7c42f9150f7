"""Integrity reports: one per (project, deliverable, version of what makes them), and which of them a job must make."""

from typing import Any

from sqlalchemy import func, select

from service.domain.artifacts import EntryKind
from service.domain.events import EventType, NewEvent
from service.domain.integrity import VERSION, IntegrityReport, ReportState
from service.store import clock, events
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.made_once import MOST, MadeOnce
from service.store.notifications import INTEGRITY, RUNS
from service.store.phases import notify, touch
from service.store.rows import IntegrityRow
from service.store.tables import artifacts, integrity_reports, runs

_FINE = (EntryKind.FILE, EntryKind.DIRECTORY)
_REPORTS = MadeOnce(integrity_reports, IntegrityRow.of, "itg", lambda: VERSION, "uq_integrity_reports_once", INTEGRITY)
request, find, present, by_id = _REPORTS.request, _REPORTS.find, _REPORTS.present, _REPORTS.by_id
open_ids, start, unqueue = _REPORTS.open_ids, _REPORTS.start, _REPORTS.unqueue


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


async def runs_of(tx: Tx, row: IntegrityRow) -> list[str]:
    """Return the runs of the project that delivered this, oldest first, at most 1 000."""
    mine = (runs.c.project_id == row.project_id, runs.c.deliverable_digest == row.digest)
    return [*(await tx.execute(select(runs.c.id).where(*mine).order_by(runs.c.created_at).limit(MOST))).scalars()]


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
    await tx.execute(integrity_reports.delete().where(*_REPORTS.unused(project_id, digest)))


async def _end(tx: Tx, report_id: str, **columns: Any) -> None:
    c = integrity_reports.c
    mine = (c.id == report_id, c.state != ReportState.READY)
    await tx.execute(integrity_reports.update().where(*mine).values(columns))
