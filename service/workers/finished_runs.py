"""Deals with finished runs, one after the other, beside everything else: a run costs its own end nothing.

A run stays due until it is dealt with, also over the death of this process; another process may do it as well.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from service.domain.errors import Unavailable
from service.store.database import Database
from service.store.finished_runs import Ledger
from service.store.notifications import RUNS, Notifications

PAGE = 50
PAUSE_S = 1.0
"""Between two looks at what has finished, however much is going on."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class NotNow(Exception):
    """A run cannot be dealt with now, and may be later. ``str()`` says why."""

    def __init__(self, reason: str, retry_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Looking:
    scan_s: float = 30.0
    """Longest time between two looks."""
    rescan_s: float = 600.0
    """After that, all of ``lookback_s`` is looked at: what another process claimed and did not finish."""
    lookback_s: float = 86_400.0
    """Older runs are not dealt with any more."""
    first_pause_s: float = 1.0
    last_pause_s: float = 60.0
    """Between tries while it cannot be done now."""


class FinishedRuns:
    """``deal`` does it for one run: raises NotNow, and whatever else it raises gives the run up, which the log says."""

    def __init__(
        self,
        db: Database,
        notifications: Notifications,
        ledger: Ledger,
        deal: Callable[[str], Awaitable[None]],
        looking: Looking | None = None,
    ) -> None:
        self._db, self._notifications, self._ledger, self._deal = db, notifications, ledger, deal
        self._looking = looking or Looking()
        self._since, self._rescanned = 0, time.monotonic()
        self._pause = self._looking.first_pause_s

    async def run(self) -> None:
        """Go on for ever; ends only by being cancelled."""
        async with self._notifications.subscribe(RUNS) as woken:
            while True:
                if await self._look():
                    await asyncio.sleep(min(PAUSE_S, self._looking.scan_s))
                    await woken.wait(self._looking.scan_s)

    async def _look(self) -> bool:
        """Deal with what is due; False where there is more, or it cannot be done now."""
        if time.monotonic() - self._rescanned > self._looking.rescan_s:
            self._since, self._rescanned = 0, time.monotonic()
        try:
            async with self._db.reading() as tx:
                due = await self._ledger.due(tx, self._since, self._looking.lookback_s, PAGE)
            for run_id in due.run_ids:
                await self._one(run_id)
        except (NotNow, Unavailable) as error:
            log.warning("finished_runs_wait", why=str(error))
            await self._wait(getattr(error, "retry_after_s", 0.0))
            return False
        self._pause = self._looking.first_pause_s
        if len(due.run_ids) == PAGE:
            return False
        self._since = due.horizon
        return True

    async def _one(self, run_id: str) -> None:
        async with self._db.transaction() as tx:
            if not await self._ledger.claim(tx, run_id):
                return
        try:
            await self._deal(run_id)
        except (NotNow, Unavailable):
            async with self._db.transaction() as tx:
                await self._ledger.release(tx, run_id)
            raise
        except Exception:  # the process loop's edge: one run's surprise must not keep the others back
            log.exception("finished_run_failed", run=run_id)
        async with self._db.transaction() as tx:
            await self._ledger.mark(tx, run_id)

    async def _wait(self, asked_s: float) -> None:
        await asyncio.sleep(max(self._pause, min(asked_s, 10 * self._looking.last_pause_s)))
        self._pause = min(2 * self._pause, self._looking.last_pause_s)
