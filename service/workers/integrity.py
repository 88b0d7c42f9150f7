"""The queue of integrity reports that no grading makes: of runs without graders, and asked for again."""

from service.lifecycle.integrity import ReportContext, make_queued
from service.store import integrity
from service.store.notifications import INTEGRITY
from service.workers.engine import Queue
from service.workers.jobs import JobQueue

NAME = "integrity"


def integrity_queue(ctx: ReportContext, concurrency: int = 2) -> JobQueue:
    """Return the queue in which such reports are made, ``concurrency`` at once in this process."""

    async def job(report_id: str) -> None:
        await make_queued(ctx, report_id)

    return JobQueue(Queue(NAME, concurrency, job), INTEGRITY, integrity.open_ids)
