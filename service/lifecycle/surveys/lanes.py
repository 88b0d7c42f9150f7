"""Models at work on their questions, each model several at a time. One that is away rests, alone, and goes on later; what it
was asked meanwhile is asked again."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from service.graders.contract import GraderBusy

AT_ONCE = 8
"""Calls of one model."""
Spec = TypeVar("Spec")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Rest:
    """How long a model that is away is left alone, seconds."""

    first_s: float = 5.0
    longest_s: float = 120.0
    most_s: float = 6 * 3600.0
    """Of not one answer, after which it is given up for now."""


class Lane(Generic[Spec, Item]):
    """One model and what it is still to be asked."""

    def __init__(self, spec: Spec, left: Iterable[Item], rest: Rest) -> None:
        self.spec = spec
        self.left = deque(left)
        self.broken: str | None = None
        """Why it need not be asked anything more."""
        self.away = False
        self._rest, self._pause_s = rest, rest.first_s
        self._heard_at = monotonic()
        self._until = 0.0

    def heard(self) -> None:
        """Note that it has answered."""
        self._heard_at, self._pause_s = monotonic(), self._rest.first_s

    async def work(self, one: Callable[["Lane[Spec, Item]", Item], Awaitable[None]]) -> None:
        """Do ``one`` with each item until none is left, or it was away for as long as it may be."""
        while self.left and not self.away:
            pause = self._until - monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
                continue
            item = self.left.popleft()
            try:
                await one(self, item)
            except GraderBusy:
                self.left.appendleft(item)
                self._put_off()

    def _put_off(self) -> None:
        now = monotonic()
        if now < self._until:
            return  # another call of it has said so
        self.away = now - self._heard_at >= self._rest.most_s
        self._until = now + self._pause_s
        self._pause_s = min(self._pause_s * 2, self._rest.longest_s)


async def work_off(
    lanes: Sequence[Lane[Spec, Item]], one: Callable[[Lane[Spec, Item], Item], Awaitable[None]]
) -> list[Spec]:
    """Let all lanes work; return those that were away to the end. Raises what ``one`` raises, but GraderBusy."""
    work = [asyncio.create_task(lane.work(one), name="survey") for lane in lanes for _ in range(AT_ONCE)]
    try:
        await asyncio.gather(*work)
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
    return [lane.spec for lane in lanes if lane.away]
