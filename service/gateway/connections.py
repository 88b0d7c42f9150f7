"""Connections that are kept for a while, so that the next request to the same place needs no new one."""

import asyncio
import ssl
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import httpcore

from service.gateway.wires import Wire

Key = tuple[bytes, bytes, int]
"""Scheme, name, port."""
Addresses = Callable[[str, int], Awaitable[str]]
"""Say which address a name stands for, or the name itself. Raises httpcore.ConnectError."""
_PORTS = {b"http": 80, b"https": 443}
_RACE_S = 0.25
"""Head start of a name's first address, where it has several."""


@dataclass(frozen=True, slots=True)
class Bounds:
    most: int
    """Requests under way at once."""
    most_idle: int
    connect_s: float
    """For a place among the requests; for a connection, its name and TLS included."""
    keep_s: float
    """How long one is kept without a request."""


@dataclass(frozen=True, slots=True)
class Begun:
    response: httpcore.Response
    connection: httpcore.AsyncHTTP11Connection
    key: Key


class Connections:
    """Each carries one request at a time; the one that rested least is taken first."""

    def __init__(self, bounds: Bounds, tls: ssl.SSLContext, addresses: Addresses) -> None:
        self._bounds, self._tls, self._addresses = bounds, tls, addresses
        self._places = asyncio.Semaphore(bounds.most)
        self._idle: defaultdict[Key, list[httpcore.AsyncHTTP11Connection]] = defaultdict(list)
        self._opening: set[asyncio.Task[Wire]] = set()
        self._swept = time.monotonic()

    async def begin(self, request: httpcore.Request) -> Begun:
        """Send a request; its answer's headers are there on return. :meth:`end` it. Raises httpcore's errors, OSError."""
        await self._place()
        try:
            key = _key_of(request.url.origin)
            connection = await self._rested(key) or await self._opened(key, request.url.origin)
            try:
                return Begun(await connection.handle_async_request(request), connection, key)
            except BaseException:
                await connection.aclose()
                raise
        except BaseException:
            self._places.release()
            raise

    async def end(self, begun: Begun) -> None:
        """Give the connection back; one whose answer did not come to its end is closed."""
        try:
            await begun.response.aclose()
        finally:
            self._places.release()
            if begun.connection.is_idle() and self._has_room():
                self._idle[begun.key].append(begun.connection)
            else:
                await begun.connection.aclose()
            await self._sweep()

    async def close(self) -> None:
        """Close what rests, and wait for what is coming up."""
        await asyncio.gather(*self._opening, return_exceptions=True)
        idle, self._idle = self._idle, defaultdict(list)
        for connection in (one for kept in idle.values() for one in kept):
            await connection.aclose()

    async def _place(self) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout(self._bounds.connect_s):
                await self._places.acquire()
        except TimeoutError as error:
            raise httpcore.PoolTimeout from error

    async def _rested(self, key: Key) -> httpcore.AsyncHTTP11Connection | None:
        while kept := self._idle.get(key):
            connection = kept.pop()
            if not connection.has_expired():
                return connection
            await connection.aclose()
        return None

    async def _opened(self, key: Key, origin: httpcore.Origin) -> httpcore.AsyncHTTP11Connection:
        """A caller who leaves meanwhile does not break it off: asyncio would forget a socket that has just come up."""
        opening = asyncio.create_task(self._wire(key[1].decode("ascii"), key[2], tls=key[0] == b"https"))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        try:
            wire = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_abort)
            raise
        return httpcore.AsyncHTTP11Connection(origin, wire, self._bounds.keep_s)

    async def _wire(self, host: str, port: int, *, tls: bool) -> Wire:
        try:
            async with asyncio.timeout(self._bounds.connect_s):
                return await self._connected(host, port, tls=tls)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout from error
        except OSError as error:  # of TLS too
            raise httpcore.ConnectError(str(error)) from error

    async def _connected(self, host: str, port: int, *, tls: bool) -> Wire:
        address = await self._addresses(host, port)
        race = _RACE_S if address == host else None
        name = host if tls else None
        _, wire = await asyncio.get_running_loop().create_connection(
            Wire, address, port, ssl=self._tls if tls else None, server_hostname=name, happy_eyeballs_delay=race
        )
        return wire

    def _has_room(self) -> bool:
        return sum(map(len, self._idle.values())) < self._bounds.most_idle

    async def _sweep(self) -> None:
        """Now and then, close what rested too long, also where nobody asks any more."""
        if time.monotonic() - self._swept < self._bounds.keep_s / 2:
            return
        self._swept = time.monotonic()
        gone = [(key, one) for key, kept in self._idle.items() for one in kept if one.has_expired()]
        for key, connection in gone:
            self._idle[key].remove(connection)
        for key in [key for key, kept in self._idle.items() if not kept]:
            del self._idle[key]
        for _, connection in gone:
            await connection.aclose()


def _abort(opening: "asyncio.Task[Wire]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().abort()


def _key_of(origin: httpcore.Origin) -> Key:
    return origin.scheme, origin.host, origin.port or _PORTS.get(origin.scheme, 443)
