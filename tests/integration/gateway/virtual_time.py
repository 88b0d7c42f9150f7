"""An event loop whose clock skips what nobody works in, and a database whose clock follows it.

While a statement or a request to a provider is under way, time passes as it does; else it jumps to the next timer.
"""

import asyncio
import selectors
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from sqlalchemy import text

from service.gateway.upstream import Upstream, UpstreamAnswer
from service.store.database import Database, Tx
from tests.fixtures.postgres import plain_url

_GRACE_S = 0.002
"""For bytes between two sockets of this process."""
_real = time.monotonic


class Time:
    """``skipped``: seconds that were jumped over. ``working``: pieces of work that take real time."""

    def __init__(self) -> None:
        self.skipped = 0.0
        self.working = 0

    def monotonic(self) -> float:
        return _real() + self.skipped

    @contextmanager
    def work(self) -> Generator[None]:
        self.working += 1
        try:
            yield
        finally:
            self.working -= 1


class _Skipping(selectors.EpollSelector):
    def __init__(self, clock: Time) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if self._clock.working or timeout is None:
            return super().select(0.02)
        found = super().select(_GRACE_S)
        if not found:
            self._clock.skipped += timeout
        return found


class SkippingLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: Time) -> None:
        super().__init__(_Skipping(clock))
        self._time = clock

    def time(self) -> float:
        return self._time.monotonic()


def follow_clock(url: str) -> None:
    """Let ``clock_timestamp()`` of this database be later by the session's setting ``sim.skipped`` (seconds)."""
    function = """
        CREATE SCHEMA sim;
        CREATE FUNCTION sim.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
            SELECT pg_catalog.clock_timestamp()
                + make_interval(secs => coalesce(nullif(current_setting('sim.skipped', true), '')::float8, 0)) $$"""
    with psycopg.connect(plain_url(url), autocommit=True) as connection:
        connection.execute(function)
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET search_path = sim, pg_catalog, public'.encode())


class SkippingDatabase(Database):
    def __init__(self, url: str, clock: Time) -> None:
        super().__init__(url, pool_size=20)
        self._time = clock

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Tx]:
        with self._time.work():
            async with super().transaction() as tx:
                yield await self._set(tx)

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[Tx]:
        with self._time.work():
            async with super().reading() as tx:
                yield await self._set(tx)

    async def _set(self, tx: Tx) -> Tx:
        skipped = {"skipped": str(self._time.skipped)}
        await tx.execute(text("SELECT set_config('sim.skipped', :skipped, true)"), skipped)
        return tx


class SkippingUpstream(Upstream):
    def __init__(self, clock: Time, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._time = clock

    @asynccontextmanager
    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, *, private: bool
    ) -> AsyncGenerator[UpstreamAnswer]:
        with self._time.work():
            async with super().ask(method, url, headers, body, private=private) as answer:
                yield answer
