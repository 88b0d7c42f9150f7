"""Removes sandboxes of this host that belong to no live attempt: what dead processes and failed removals left."""

import asyncio

import structlog

from service.domain.errors import Unavailable
from service.lifecycle.context import Context
from service.sandboxes.contract import SandboxError
from service.store import attempts

GRACE_S = 120.0
"""A sandbox of this process that nobody holds is left alone so long: it may be just being made."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Reaper:
    """Make it, and call :meth:`sweep` with ``at_start``, before this process makes any sandbox."""

    def __init__(self, ctx: Context, host_id: str, *, every_s: float = 60.0, grace_s: float = GRACE_S) -> None:
        self._ctx = ctx
        self._host_id = host_id
        self._every_s = every_s
        self._grace_s = grace_s
        self._seen: dict[str, float] = {}

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            await asyncio.sleep(self._every_s)
            try:
                await self.sweep()
            except (SandboxError, Unavailable) as error:
                log.warning("reaper_failed", error=str(error))

    async def sweep(self, *, at_start: bool = False) -> list[str]:
        """Remove what is orphaned, return the ids removed. Raises EngineError, Unavailable.

        ``at_start``: whatever is there is of processes that are gone (the caller holds the host's locks), so nothing
        has to be spared but what a live attempt is bound to.
        """
        now = asyncio.get_running_loop().time()
        orphans = await self._orphans()
        self._seen = {i: self._seen.get(i, now) for i in orphans}
        due = [i for i in orphans if at_start or now - self._seen[i] >= self._grace_s]
        return [i for i in due if await self._remove(i)]

    async def _orphans(self) -> list[str]:
        # In this order: a sandbox that is bound between the two looks is found by the later one.
        present = await self._ctx.sandboxes.backend.list_ids()
        async with self._ctx.db.reading() as tx:
            bound = await attempts.live_sandbox_ids(tx, self._host_id)
        spared = bound | self._ctx.warm.ids() | {s.id for s in self._ctx.sandboxes.held()}
        return [i for i in present if i not in spared]

    async def _remove(self, sandbox_id: str) -> bool:
        try:
            await self._ctx.sandboxes.backend.remove(sandbox_id)
        except SandboxError as error:
            log.warning("reap_failed", sandbox=sandbox_id, error=str(error))
            return False
        log.info("reaped", sandbox=sandbox_id)
        self._seen.pop(sandbox_id, None)
        return True
