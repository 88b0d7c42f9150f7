"""The process of background jobs: sees to it that everything open in its queues is worked on, by itself or another."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from service.domain.errors import Unavailable
from service.store.database import Database, Tx
from service.store.notifications import Notifications
from service.workers.engine import EngineConfig, JobEngine, Queue, job_engine

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JobQueue:
    """A queue, and how the application's rows say what is open in it."""

    queue: Queue
    channel: str
    """Its notifications say that something may have become open."""
    open_ids: Callable[[Tx], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class JobsConfig:
    scan_s: float = 5.0
    """Level-triggered look at what is open; notifications only make it sooner."""
    poll_s: float = 1.0
    rest_s: float = 0.25
    """Between two looks, however much is notified: hundreds of gradings end in a second."""
    forget_s: float = 3600.0
    """Between two times that what DBOS keeps of old jobs is deleted."""


async def run_jobs(
    db: Database, notifications: Notifications, queues: Sequence[JobQueue], config: JobsConfig, stop: asyncio.Event
) -> None:
    """Work until ``stop`` is set. Raises Unavailable at start only."""
    async with job_engine(db, [q.queue for q in queues], EngineConfig(config.poll_s)) as engine:
        log.info("jobs_up", **{q.queue.name: q.queue.concurrency for q in queues})
        scans = [asyncio.create_task(_scan(db, notifications, q, config, engine)) for q in queues]
        stopping = asyncio.create_task(stop.wait())
        forgetting = asyncio.create_task(_forget(engine, config))
        tasks: list[asyncio.Task[Any]] = [*scans, forgetting, stopping]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _scan(
    db: Database, notifications: Notifications, queue: JobQueue, config: JobsConfig, engine: JobEngine
) -> None:
    async with notifications.subscribe(queue.channel) as changes:
        while True:
            try:
                await scan_once(db, queue, engine)
            except Unavailable:
                log.warning("jobs_wait", queue=queue.queue.name)
            await asyncio.sleep(config.rest_s)
            await changes.wait(config.scan_s)


async def _forget(engine: JobEngine, config: JobsConfig) -> None:
    while True:
        await asyncio.sleep(config.forget_s)
        with contextlib.suppress(Unavailable):
            log.info("jobs_forgotten", count=await engine.forget())


async def scan_once(db: Database, queue: JobQueue, engine: JobEngine) -> int:
    """Give everything open in ``queue`` a living job; return how many were queued. Raises Unavailable."""
    async with db.reading() as tx:
        open_ids = await queue.open_ids(tx)
    return await engine.ensure(queue.queue.name, open_ids)
