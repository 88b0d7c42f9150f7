"""The queues of gradings: those that need a sandbox, and those that ask judges and mostly wait."""

from collections.abc import Sequence
from functools import partial

from service.domain.grading_plans import GradingQueue
from service.lifecycle.grade import GradeContext, grade
from service.store.database import Tx
from service.store.grading_jobs import open_ids
from service.store.notifications import GRADINGS
from service.workers.engine import Queue
from service.workers.jobs import JobQueue

NAME, JUDGED = "gradings", "judgings"


def grading_queue(ctx: GradeContext, concurrency: int = 4) -> JobQueue:
    """Return the queue in which gradings with sandboxes are decided, ``concurrency`` at once in this process."""
    return _queue(ctx, NAME, "rooms", concurrency)


def judging_queue(ctx: GradeContext, concurrency: int = 64) -> JobQueue:
    """Return the queue of gradings by judges; how many calls they make at once is bounded apart (lifecycle.judge_calls)."""
    return _queue(ctx, JUDGED, "judges", concurrency)


def _queue(ctx: GradeContext, name: str, kind: GradingQueue, concurrency: int) -> JobQueue:
    async def open_(tx: Tx) -> Sequence[str]:
        return await open_ids(tx, kind)

    return JobQueue(Queue(name, concurrency, partial(grade, ctx)), GRADINGS, open_)
