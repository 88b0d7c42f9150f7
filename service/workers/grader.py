"""The queue of gradings."""

from service.lifecycle.grade import GradeContext, grade
from service.store import gradings
from service.store.notifications import GRADINGS
from service.workers.engine import Queue
from service.workers.jobs import JobQueue

NAME = "gradings"


def grading_queue(ctx: GradeContext, concurrency: int = 4) -> JobQueue:
    """Return the queue in which open gradings are decided, ``concurrency`` at once in this process."""

    async def job(grading_id: str) -> None:
        await grade(ctx, grading_id)

    return JobQueue(Queue(NAME, concurrency, job), GRADINGS, gradings.open_ids)
