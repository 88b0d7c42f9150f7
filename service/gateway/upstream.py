"""Connections to providers: keep-alive, no redirects, no cookies, no proxy of the environment, checked addresses.

A name is resolved once for a connection, every address that it has must be global (unless the entry is an operator's),
and what is connected to is one of those addresses; certificate and SNI are the name's.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import certifi
import httpcore

from service.domain.public_urls import is_global
from service.gateway.connections import Begun, Bounds, Connections
from service.gateway.limits import GatewayLimits

KEEP_ALIVE_S = 60.0
MOST_IDLE = 200


class UpstreamFailed(Exception):
    """``reason``: upstream_unreachable | upstream_not_public | upstream_tls | upstream_cut."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _NotPublic(httpcore.ConnectError):
    pass


async def _public(host: str, port: int) -> str:
    """Return an address of a name all of whose addresses are global. Raises _NotPublic, httpcore.ConnectError."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError("no such name") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not addresses or not all(is_global(address) for address in addresses):
        raise _NotPublic(f"{host} is not at a public address")
    return addresses[0]


async def _any(host: str, port: int) -> str:
    del port
    return host


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """An answer whose body is still to come."""

    status: int
    headers: dict[str, str]
    """Names in lower case; of a repeated one the last."""
    pieces: AsyncGenerator[bytes]
    """The body as it comes. Raises UpstreamFailed."""

    async def start_of_body(self, limit: int) -> bytes:
        """Return up to ``limit`` bytes; what breaks off is as long as it is."""
        data = b""
        with contextlib.suppress(UpstreamFailed):
            async for piece in self.pieces:
                data += piece
                if len(data) >= limit:
                    break
        return data[:limit]


async def _pieces(response: httpcore.Response) -> AsyncGenerator[bytes]:
    try:
        async for piece in response.aiter_stream():
            yield piece
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
        raise UpstreamFailed("upstream_cut") from error


class Asked(Protocol):
    """Whoever answers in the end: providers, or a recording of what they answered."""

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, *, private: bool
    ) -> AbstractAsyncContextManager[UpstreamAnswer]:
        """As :meth:`Upstream.ask`."""
        ...


class Upstream:
    def __init__(
        self, limits: GatewayLimits, *, allow_private: bool = False, tls: ssl.SSLContext | None = None
    ) -> None:
        context = tls or ssl.create_default_context(cafile=certifi.where())
        context.set_alpn_protocols(["http/1.1"])
        bounds = Bounds(limits.connections_upstream, MOST_IDLE, limits.connect_s, KEEP_ALIVE_S)
        self._any = Connections(bounds, context, _any)
        self._public = self._any if allow_private else Connections(bounds, context, _public)
        self._timeouts = {"write": limits.stalled_s, "read": None}

    @asynccontextmanager
    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, *, private: bool
    ) -> AsyncGenerator[UpstreamAnswer]:
        """Send a request; the answer is there once its headers are. The end of the block gives the connection up.

        Raises UpstreamFailed. Nothing here bounds the wait for the answer: the caller does.
        """
        pool = self._any if private else self._public
        encoded = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
        encoded.append((b"host", urlsplit(url).netloc.encode("ascii")))
        if body or method != "GET":
            encoded.append((b"content-length", str(len(body)).encode()))
        request = httpcore.Request(method, url, headers=encoded, content=body, extensions={"timeout": self._timeouts})
        begun = await _sent(pool, request)
        response, pieces = begun.response, _pieces(begun.response)
        try:
            pairs = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            yield UpstreamAnswer(response.status, pairs, pieces)
        finally:
            try:
                await pieces.aclose()
            finally:
                await pool.end(begun)

    async def close(self) -> None:
        await self._any.close()
        await self._public.close()


async def _sent(pool: Connections, request: httpcore.Request) -> Begun:
    try:
        return await pool.begin(request)
    except _NotPublic as error:
        raise UpstreamFailed("upstream_not_public") from error
    except (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout, OSError) as error:
        tls = isinstance(error.__cause__ or error.__context__, ssl.SSLError)
        raise UpstreamFailed("upstream_tls" if tls else "upstream_unreachable") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
        raise UpstreamFailed("upstream_cut") from error
