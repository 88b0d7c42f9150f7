"""The grader process: sees to it that every open grading is worked on, by itself or another grader."""

import asyncio
from dataclasses import dataclass

import structlog

from service.domain.errors import Unavailable
from service.lifecycle.grade import GradeContext, grade
from service.store import gradings
from service.store.notifications import GRADINGS, Notifications
from service.workers.engine import EngineConfig, JobEngine, job_engine

QUEUE = "gradings"
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class GraderConfig:
    concurrency: int = 4
    scan_s: float = 5.0
    """Level-triggered look at the open gradings; notifications only make it sooner."""
    poll_s: float = 1.0


async def run_grader(
    ctx: GradeContext, notifications: Notifications, config: GraderConfig, stop: asyncio.Event
) -> None:
    """Grade until ``stop`` is set. Raises Unavailable at start only."""

    async def job(grading_id: str) -> None:
        await grade(ctx, grading_id)

    engine_config = EngineConfig(QUEUE, config.concurrency, config.poll_s)
    async with job_engine(ctx.db, engine_config, job) as engine:
        log.info("grader_up", concurrency=config.concurrency)
        scanning = asyncio.create_task(_scan(ctx, notifications, config, engine))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({scanning, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if scanning.done():
                scanning.result()
        finally:
            for task in (scanning, stopping):
                task.cancel()
            await asyncio.gather(scanning, stopping, return_exceptions=True)


async def _scan(ctx: GradeContext, notifications: Notifications, config: GraderConfig, engine: JobEngine) -> None:
    async with notifications.subscribe(GRADINGS) as changes:
        while True:
            try:
                await scan_once(ctx, engine)
            except Unavailable:
                log.warning("grader_waits")
            await changes.wait(config.scan_s)


async def scan_once(ctx: GradeContext, engine: JobEngine) -> int:
    """Give every open grading a living job; return how many were queued. Raises Unavailable."""
    async with ctx.db.reading() as tx:
        open_ids = await gradings.open_ids(tx)
    return await engine.ensure(open_ids)
