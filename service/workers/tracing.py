"""Sends finished runs to a collector of traces, one after the other, beside everything else.

A run is finished long before it is looked at here, and stays due until the collector has taken it: one that is away or
slow costs a run nothing but lateness. What is sent again after a death in between has the same ids.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol

import structlog

from service.domain.errors import Unavailable
from service.domain.traces import Trace
from service.lifecycle.tracing.building import trace_of
from service.lifecycle.tracing.reading import facts_of
from service.store import traced_runs
from service.store.database import Database
from service.store.notifications import RUNS, Notifications

PAGE = 50
PAUSE_S = 1.0
"""Between two looks at what has finished, however much is going on."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class CollectorAway(Exception):
    """The collector did not take a trace now, and may later. ``str()`` says why."""

    def __init__(self, reason: str, retry_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class TraceRefused(Exception):
    """The collector will never take this trace. ``str()`` says why."""


class Collector(Protocol):
    async def send(self, trace: Trace) -> None:
        """Return when all of it was taken. Raises CollectorAway, TraceRefused."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Tracing:
    content: bool = False
    """Also what was said, asked and answered."""
    scan_s: float = 30.0
    """Longest time between two looks."""
    rescan_s: float = 600.0
    """After that, all of ``lookback_s`` is looked at: what another process claimed and did not send."""
    lookback_s: float = 86_400.0
    """Older runs are not sent any more."""
    first_pause_s: float = 1.0
    last_pause_s: float = 60.0
    """Between tries while the collector is away."""


class RunTracer:
    def __init__(
        self, db: Database, notifications: Notifications, collector: Collector, tracing: Tracing | None = None
    ) -> None:
        self._db, self._notifications, self._collector = db, notifications, collector
        self._tracing = tracing or Tracing()
        self._since, self._rescanned = 0, time.monotonic()
        self._pause = self._tracing.first_pause_s

    async def run(self) -> None:
        """Send for ever; ends only by being cancelled."""
        try:
            async with self._notifications.subscribe(RUNS) as woken:
                while True:
                    if await self._look():
                        await asyncio.sleep(min(PAUSE_S, self._tracing.scan_s))
                        await woken.wait(self._tracing.scan_s)
        finally:
            await self._collector.close()

    async def _look(self) -> bool:
        """Send what is due; False where there is more, or the collector is away, or the database."""
        if time.monotonic() - self._rescanned > self._tracing.rescan_s:
            self._since, self._rescanned = 0, time.monotonic()
        try:
            async with self._db.reading() as tx:
                due = await traced_runs.due(tx, self._since, self._tracing.lookback_s, PAGE)
            for run_id in due.run_ids:
                await self._send(run_id)
        except (CollectorAway, Unavailable) as error:
            log.warning("traces_wait", why=str(error))
            await self._wait(getattr(error, "retry_after_s", 0.0))
            return False
        self._pause = self._tracing.first_pause_s
        if len(due.run_ids) == PAGE:
            return False
        self._since = due.horizon
        return True

    async def _send(self, run_id: str) -> None:
        async with self._db.transaction() as tx:
            if not await traced_runs.claim(tx, run_id):
                return
        try:
            await self._deliver(run_id)
        except CollectorAway:
            async with self._db.transaction() as tx:
                await traced_runs.release(tx, run_id)
            raise
        async with self._db.transaction() as tx:
            await traced_runs.mark(tx, run_id)

    async def _deliver(self, run_id: str) -> None:
        facts = await facts_of(self._db, run_id, content=self._tracing.content)
        if facts is None:
            return
        try:
            await self._collector.send(await asyncio.to_thread(trace_of, facts, content=self._tracing.content))
        except TraceRefused as error:
            log.warning("trace_refused", run=run_id, why=str(error))
        except CollectorAway:
            raise
        except Exception:  # the process loop's edge: one run's surprise must not keep the others' traces back
            log.exception("trace_failed", run=run_id)

    async def _wait(self, asked_s: float) -> None:
        await asyncio.sleep(max(self._pause, min(asked_s, 10 * self._tracing.last_pause_s)))
        self._pause = min(2 * self._pause, self._tracing.last_pause_s)
