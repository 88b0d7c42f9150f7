"""How far a preflight is, and several of its checks at once."""

import asyncio
from collections.abc import Awaitable, Iterable

from service.lifecycle.operations.contract import Job


class Steps:
    """Counts the checks of one operation that have ended."""

    def __init__(self, job: Job, total: int) -> None:
        self._job, self._total, self._done = job, total, 0

    async def begin(self) -> None:
        """Raises JobCancelled, Unavailable."""
        await self._job.report(self._done, self._total)

    async def ended(self, text: str) -> None:
        """Say what came of a check. Raises JobCancelled, Unavailable."""
        self._done += 1
        self._job.say(text)
        await self.begin()


async def together(works: Iterable[Awaitable[None]]) -> None:
    """Do all at once; the first exception ends the others and is raised as it is."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
