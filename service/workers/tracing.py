"""Sends finished runs to a collector of traces. What is sent again after a death in between has the same ids."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

import structlog

from service.domain.traces import Trace
from service.lifecycle.tracing.building import trace_of
from service.lifecycle.tracing.reading import facts_of
from service.store.database import Database
from service.store.finished_runs import TRACED
from service.store.notifications import Notifications
from service.workers.finished_runs import FinishedRuns, Looking, NotNow

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class CollectorAway(NotNow):
    """The collector did not take a trace now, and may later."""


class TraceRefused(Exception):
    """The collector will never take this trace. ``str()`` says why."""


class Collector(Protocol):
    async def send(self, trace: Trace) -> None:
        """Return when all of it was taken. Raises CollectorAway, TraceRefused."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Tracing(Looking):
    content: bool = False
    """Also what was said, asked and answered."""


class RunTracer:
    def __init__(
        self, db: Database, notifications: Notifications, collector: Collector, tracing: Tracing | None = None
    ) -> None:
        tracing = tracing or Tracing()
        self._db, self._collector, self._content = db, collector, tracing.content
        self._finished = FinishedRuns(db, notifications, TRACED, self._deliver, tracing)

    async def run(self) -> None:
        """Send for ever; ends only by being cancelled."""
        try:
            await self._finished.run()
        finally:
            await self._collector.close()

    async def _deliver(self, run_id: str) -> None:
        facts = await facts_of(self._db, run_id, content=self._content)
        if facts is None:
            return
        try:
            await self._collector.send(await asyncio.to_thread(trace_of, facts, content=self._content))
        except TraceRefused as error:
            log.warning("trace_refused", run=run_id, why=str(error))
