"""The queue of regrades: makes the gradings of those that were started and ends those whose gradings have all ended."""

from service.lifecycle.regrades import carry_on
from service.store import regrades
from service.store.database import Database
from service.store.notifications import REGRADES
from service.workers.engine import Queue
from service.workers.jobs import JobQueue

NAME = "regrades"


def regrade_queue(db: Database, concurrency: int = 2) -> JobQueue:
    """Return the queue; a job does what can be done now, and the next scan finds what that left."""

    async def job(regrade_id: str) -> None:
        await carry_on(db, regrade_id)

    return JobQueue(Queue(NAME, concurrency, job), REGRADES, regrades.open_ids)
