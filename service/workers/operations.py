"""The queue of operations."""

from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.perform import perform
from service.store import operations
from service.store.notifications import OPERATIONS
from service.workers.engine import Queue
from service.workers.jobs import JobQueue

NAME = "operations"


def operation_queue(ctx: OperationContext, concurrency: int = 2) -> JobQueue:
    """Return the queue in which open operations are done, ``concurrency`` at once in this process."""

    async def job(operation_id: str) -> None:
        await perform(ctx, operation_id)

    return JobQueue(Queue(NAME, concurrency, job), OPERATIONS, operations.open_ids)
