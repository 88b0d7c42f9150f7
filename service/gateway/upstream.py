"""Connections to providers: keep-alive, no redirects, no cookies, no proxy of the environment, checked addresses.

A name is resolved once for a connection, every address that it has must be global (unless the entry is an operator's),
and what is connected to is one of those addresses; certificate and SNI are the name's.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import certifi
import httpcore

from service.domain.public_urls import is_global
from service.gateway.limits import GatewayLimits

KEEP_ALIVE_S = 60.0


class UpstreamFailed(Exception):
    """``reason``: upstream_unreachable | upstream_not_public | upstream_tls | upstream_cut."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _NotPublic(httpcore.ConnectError):
    pass


class _Checked(httpcore.AsyncNetworkBackend):
    """Connects to global addresses only."""

    def __init__(self) -> None:
        self._plain = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError("no such name") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if not addresses or not all(is_global(address) for address in addresses):
            raise _NotPublic(f"{host} is not at a public address")
        return await self._plain.connect_tcp(addresses[0], port, timeout, local_address, socket_options)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        raise _NotPublic(f"no provider is behind {path}")

    async def sleep(self, seconds: float) -> None:
        await self._plain.sleep(seconds)


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

        def pool(backend: httpcore.AsyncNetworkBackend | None) -> httpcore.AsyncConnectionPool:
            return httpcore.AsyncConnectionPool(
                ssl_context=context, max_connections=limits.connections_upstream, max_keepalive_connections=200,
                keepalive_expiry=KEEP_ALIVE_S, http1=True, http2=False, retries=0, network_backend=backend,
            )  # fmt: skip

        self._any = pool(None)
        self._public = self._any if allow_private else pool(_Checked())
        self._timeouts = {
            "connect": limits.connect_s,
            "pool": limits.connect_s,
            "write": limits.stalled_s,
            "read": None,
        }

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
        response = await _sent(pool, request)
        pieces = _pieces(response)
        try:
            pairs = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            yield UpstreamAnswer(response.status, pairs, pieces)
        finally:
            await pieces.aclose()
            await response.aclose()

    async def close(self) -> None:
        await self._any.aclose()
        await self._public.aclose()


async def _sent(pool: httpcore.AsyncConnectionPool, request: httpcore.Request) -> httpcore.Response:
    try:
        return await pool.handle_async_request(request)
    except _NotPublic as error:
        raise UpstreamFailed("upstream_not_public") from error
    except (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout, OSError) as error:
        tls = isinstance(error.__cause__ or error.__context__, ssl.SSLError)
        raise UpstreamFailed("upstream_tls" if tls else "upstream_unreachable") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
        raise UpstreamFailed("upstream_cut") from error
