"""What is known of one caller's requests at the moment: the host's side of a run's story."""

import asyncio
import time

from service.lifecycle.ports import GateState


class Activity:
    def __init__(self) -> None:
        self.requests = 0
        self.open_requests = 0
        self.provider_wait_s = 0.0
        self.budget_exhausted = False
        self.provider_failed = False
        self.left_waiting = False
        """The last request's client left while the provider kept it waiting: it may ask again."""
        self._last: float | None = None
        self._ended = asyncio.Event()

    def moved(self) -> None:
        """A byte of a request or an answer passed."""
        self._last = time.monotonic()

    def exhaust(self) -> None:
        self.budget_exhausted = True
        self._ended.set()

    def provider(self, *, failed: bool) -> None:
        """Say how the last request ended, as far as the provider is concerned."""
        self.provider_failed, self.left_waiting = failed, False
        if failed:
            self._ended.set()
        elif not self.budget_exhausted:
            self._ended.clear()

    async def ended(self) -> GateState:
        """Return once the budget is spent or the provider has failed for good."""
        while not (self.budget_exhausted or self.provider_failed):
            await self._ended.wait()
        return self.state()

    def state(self) -> GateState:
        ago = None if self._last is None else time.monotonic() - self._last
        failed = self.provider_failed or self.left_waiting
        return GateState(self.requests, ago, self.open_requests, self.provider_wait_s, self.budget_exhausted, failed)
