"""The queue of evidence documents that somebody asked for; those of gradings are made by the gradings."""

from service.lifecycle.evidence import make_queued
from service.lifecycle.integrity import ReportContext
from service.store import evidence
from service.store.notifications import EVIDENCE
from service.workers.engine import Queue
from service.workers.jobs import JobQueue

NAME = "evidence"


def evidence_queue(ctx: ReportContext, concurrency: int = 2) -> JobQueue:
    """Return the queue in which such documents are made, ``concurrency`` at once in this process."""

    async def job(document_id: str) -> None:
        await make_queued(ctx, document_id)

    return JobQueue(Queue(NAME, concurrency, job), EVIDENCE, evidence.open_ids)
