"""Who may ask one provider now: first come, first served, within a limit that follows what the provider bears."""

import asyncio
from collections import deque

from service.domain.breakers import AdaptiveLimit

UNLIMITED = 10_000
_LOOK_S = 5.0


class Turnstile:
    """One way to a model. It is shut while its breaker is not closed; ``pause_until`` is what a Retry-After asked for."""

    def __init__(self, most: int | None) -> None:
        self.limit = AdaptiveLimit(most or UNLIMITED)
        self.in_use = 0
        self.shut = False
        self.pause_until = float("-inf")
        """In the event loop's time."""
        self._queue: deque[asyncio.Event] = deque()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def allow(self, most: int | None) -> None:
        """Follow the catalogue: an entry's bound may have been changed."""
        self.limit.most = most or UNLIMITED
        self.limit.limit = min(self.limit.limit, float(self.limit.most)) if most else self.limit.limit

    def poke(self) -> None:
        """Let whoever is first look again."""
        if self._queue:
            self._queue[0].set()

    async def first(self) -> asyncio.Event:
        """Return once the caller is first in the queue, as an event that says when to look again.

        Whoever called this calls :meth:`leave` with the event, whatever happens.
        """
        turn = asyncio.Event()
        self._queue.append(turn)
        try:
            while self._queue[0] is not turn:
                await turn.wait()
                turn.clear()
        except BaseException:
            self.leave(turn)
            raise
        return turn

    def leave(self, turn: asyncio.Event) -> None:
        """Give the place in the queue to the next."""
        self._queue.remove(turn)
        self.poke()

    def try_enter(self) -> bool:
        """Take a place if there is one now."""
        now = asyncio.get_running_loop().time()
        if self.shut or now < self.pause_until or self.in_use >= self.limit.present:
            return False
        self.in_use += 1
        return True

    def exit(self) -> None:
        self.in_use -= 1
        self.poke()

    async def rest(self, turn: asyncio.Event, at_most_s: float = _LOOK_S) -> None:
        """Wait until something may have changed, as the first of the queue."""
        now = asyncio.get_running_loop().time()
        pause = self.pause_until - now if self.pause_until > now else at_most_s
        try:
            async with asyncio.timeout(max(0.001, min(at_most_s, pause))):
                await turn.wait()
        except TimeoutError:
            return
        turn.clear()
