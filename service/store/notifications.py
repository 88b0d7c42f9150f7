"""One LISTEN connection per process, fanned out in memory.

A notification is a hint: subscribers re-read from their own cursor, so any number of hints may coalesce, and a
connection that was lost wakes everybody.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg

from service.domain.errors import Unavailable
from service.store.database import connect

RUNS = "runs"
"""``<run_id> <phase>``: a run was made, changed its phase, was asked to stop, or changed outside its event log."""
QUEUE = "queue"
"""``<run_id>``: a run became claimable."""
RUN_EVENTS = "run_events"
"""``<run_id> <last_seq>``"""
GRADINGS = "gradings"
"""``<grading_id> <state>``"""
OPERATIONS = "operations"
"""``<operation_id> <state>``"""
CHANGES = "changes"
"""``<project_id>``: a resource of the project changed (sent by the trigger ``record_change``)."""
INTEGRITY = "integrity"
"""``<report_id>``: a job must make an integrity report."""
EVIDENCE = "evidence"
"""``<document_id>``: a job must make an evidence document."""
WEBHOOKS = "webhooks"
"""``<webhook_id>``: a delivery is due."""
BREAKERS = "breakers"
"""``<model_id>``: a breaker opened, closed, or is probed."""
IMAGES = "images"
"""``<image_id>``: an image became ready, or was deleted."""
REGRADES = "regrades"
"""``<regrade_id>``: a regrade was started or cancelled."""
CHANNELS = (
    RUNS,
    QUEUE,
    RUN_EVENTS,
    GRADINGS,
    CHANGES,
    OPERATIONS,
    INTEGRITY,
    EVIDENCE,
    WEBHOOKS,
    BREAKERS,
    IMAGES,
    REGRADES,
)

_PROBE_S = 10.0
_ANSWER_S = 5.0
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.05, 3.0
_Key = tuple[str, str | None]


class Subscription:
    """Woken by notifications of one channel and key; holds one bit, whatever happens."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def wait(self, timeout_s: float) -> bool:
        """Wait until something may have changed since the last call; False after ``timeout_s`` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True


class Notifications:
    """Start it once per process (``async with`` or :meth:`start`); subscribing needs no connection."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._subscribers: defaultdict[_Key, set[Subscription]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None
        self.connected = asyncio.Event()

    async def __aenter__(self) -> "Notifications":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Begin listening in the background; returns at once, also while the database is away."""
        self._task = self._task or asyncio.create_task(self._run(), name="notifications")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    @asynccontextmanager
    async def subscribe(self, channel: str, key: str | None = None) -> AsyncGenerator[Subscription]:
        """Subscribe to ``channel``: to notifications whose first word is ``key``, or to all of them.

        Read your rows *after* entering the block, then wait: nothing in between is lost.
        """
        subscription = Subscription()
        self._subscribers[channel, key].add(subscription)
        try:
            yield subscription
        finally:
            self._subscribers[channel, key].discard(subscription)
            if not self._subscribers[channel, key]:
                del self._subscribers[channel, key]

    def wake_all(self) -> None:
        for subscribers in list(self._subscribers.values()):
            _wake(subscribers)

    async def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            with suppress(Unavailable, psycopg.Error, TimeoutError, OSError):
                async with await connect(self._url) as connection:
                    await self._listen(connection)
                    pause = _FIRST_PAUSE_S
                    self.wake_all()
                    self.connected.set()
                    await self._receive(connection)
            self.connected.clear()
            self.wake_all()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
            pause = min(pause * 2, _LAST_PAUSE_S)

    async def _listen(self, connection: psycopg.AsyncConnection[Any]) -> None:
        async with asyncio.timeout(_ANSWER_S):
            for channel in CHANNELS:
                await connection.execute(f"LISTEN {channel}".encode())

    async def _receive(self, connection: psycopg.AsyncConnection[Any]) -> None:
        while True:
            async for notice in connection.notifies(timeout=_PROBE_S):
                self._dispatch(notice.channel, notice.payload)
            async with asyncio.timeout(_ANSWER_S):
                await connection.execute("SELECT 1")

    def _dispatch(self, channel: str, payload: str) -> None:
        key = payload.partition(" ")[0]
        _wake(self._subscribers.get((channel, key), ()))
        _wake(self._subscribers.get((channel, None), ()))


def _wake(subscribers: "set[Subscription] | tuple[()]") -> None:
    for subscription in subscribers:
        subscription.wake()
