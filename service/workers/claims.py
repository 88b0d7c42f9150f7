"""Takes runs while there are free slots, and keeps one task per live attempt of this host."""

import asyncio
from collections.abc import Callable

import structlog

from service.domain.errors import Unavailable
from service.lifecycle.context import Context
from service.lifecycle.queue import claim
from service.store import attempts, capacity
from service.store.notifications import QUEUE
from service.store.rows import AttemptRow, HostRow
from service.workers.attempt_loop import Patience, run_attempt

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Claims:
    """Claims on notification, when a slot becomes free, and every few seconds whatever happened."""

    def __init__(self, ctx: Context, host: HostRow, *, scan_s: float = 5.0, patience: Patience | None = None) -> None:
        self._ctx = ctx
        self.host = host
        self._scan_s = scan_s
        self._patience = patience or Patience()
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._wake: Callable[[], None] = lambda: None

    @property
    def busy(self) -> int:
        return len(self._tasks)

    def adopt(self, found: list[AttemptRow]) -> None:
        """Work on these attempts unless this process does so already."""
        for attempt in found:
            key = (attempt.run_id, attempt.fence)
            if key not in self._tasks:
                task = asyncio.create_task(
                    run_attempt(self._ctx, attempt, self._patience), name=f"run {attempt.run_id}"
                )
                self._tasks[key] = task
                task.add_done_callback(lambda done, key=key: self._done(key, done))

    async def run(self) -> None:
        """Claim for ever."""
        async with self._ctx.notifications.subscribe(QUEUE) as changes:
            self._wake = changes.wake
            while True:
                try:
                    await self._claim_all()
                except Unavailable:
                    log.warning("claims_wait")
                if not await changes.wait(self._scan_s):
                    await self._rescan()

    async def stop(self) -> None:
        """Let go of all attempts without touching their sandboxes: the next process takes them over."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _claim_all(self) -> None:
        while (free := self.host.slots - self.busy) > 0:
            claimed = await claim(self._ctx, self.host, free)
            self.adopt(claimed)
            if len(claimed) < free:
                break
        await self._leave_room()

    async def _leave_room(self) -> None:
        """Let warm sandboxes have the memory that no run was promised, and no more."""
        async with self._ctx.db.reading() as tx:
            room = await capacity.of_host(tx, self.host.id)
        left = None if room is None else room.memory_left_bytes
        self._ctx.warm.allow(None if left is None else max(left, 0))

    async def _rescan(self) -> None:
        """Find attempts whose claim was committed though we were told otherwise."""
        try:
            async with self._ctx.db.reading() as tx:
                self.adopt(await attempts.live_of_host(tx, self.host.id))
        except Unavailable:
            log.warning("rescan_waits")

    def _done(self, key: tuple[str, int], task: "asyncio.Task[None]") -> None:
        self._tasks.pop(key, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("attempt_task_failed", run=key[0], exc_info=error)
        self._wake()
