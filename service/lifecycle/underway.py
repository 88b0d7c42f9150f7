"""The gradings that this process decides now: each is broken off once it has ended elsewhere (cancelled, its run deleted)."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from service.domain.errors import Unavailable
from service.store.database import Database
from service.store.grading_jobs import over_of

T = TypeVar("T")
LOOK_S = 1.0


class Underway:
    def __init__(self, db: Database, look_s: float = LOOK_S) -> None:
        self._db, self._look_s = db, look_s
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def work(self, grading_id: str, work: Coroutine[Any, Any, T]) -> T | None:
        """Return what ``work`` does, null if it was broken off because its grading is over. Raises what it raises."""
        task = self._tasks[grading_id] = asyncio.create_task(work)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="gradings under way")
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()  # no more than a word where it is done
            self._tasks.pop(grading_id, None)
            await asyncio.wait({task})
            await self._rest()
        return None if task.cancelled() else task.result()

    async def _rest(self) -> None:
        if not self._tasks and self._looking is not None:
            looking, self._looking = self._looking, None
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self._look_s)
            try:
                async with self._db.reading() as tx:
                    over = await over_of(tx, [*self._tasks])
            except Unavailable:
                continue
            for grading_id in over:
                if (task := self._tasks.get(grading_id)) is not None:
                    task.cancel()
