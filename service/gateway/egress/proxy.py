"""An HTTP proxy for one run: names are judged before they are resolved, addresses before they are connected to.

CONNECT: the TLS client must then name the same host (SNI); without a name, or with another, nothing is passed on. Plain
http: one request per connection, to port 80. Bytes are never decrypted; what was decided is an event.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from service.domain.egress import HTTPS, HostRefused, Target, check, normal_host
from service.domain.policies import NetworkRules
from service.domain.public_urls import is_global
from service.gateway.egress.client_hello import NotTls, server_name
from service.gateway.egress.request_head import MOST_BYTES, BadHead, Head, asked, parse_head

HEAD_S, CONNECT_S, HELLO_S, IDLE_S = 10.0, 15.0, 10.0, 600.0
MOST_CONNECTIONS = 256
CHUNK = 64 << 10

Decide = Callable[[dict[str, Any]], Awaitable[None]]
"""Takes the payload of an ``egress.decision`` event."""
Resolve = Callable[[str, int], Awaitable[list[str]]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[str, int], Awaitable[Streams]]
"""Takes an address and a port."""


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a name, each once. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


async def connect(address: str, port: int) -> Streams:
    return await asyncio.open_connection(address, port, limit=CHUNK)


@dataclass(slots=True)
class EgressProxy:
    """Serves one planted listener until :meth:`close`."""

    rules: NetworkRules
    decide: Decide
    resolve: Resolve = resolve
    connect: Connect = connect
    allowed: Callable[[str], bool] = is_global
    """Whether an address may be connected to; tests let their own servers through."""
    _stopped: bool = False
    _server: asyncio.Server | None = None
    _open: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])

    async def serve(self, listener: socket.socket) -> None:
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=MOST_BYTES)

    def stop(self) -> None:
        """Cut every connection; new ones are told that the run is over."""
        self._stopped = True
        for task in list(self._open):
            task.cancel()

    def resume(self, rules: NetworkRules) -> None:
        self.rules, self._stopped = rules, False

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        if self._server is not None:
            self._server.close()
        self.stop()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self._stopped or len(self._open) >= MOST_CONNECTIONS:
            await _refuse(writer, 503, "run_over" if self._stopped else "too_many_connections")
            return
        self._open.add(task)
        try:
            await self._one(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = b""
        try:
            async with asyncio.timeout(HEAD_S):
                data = await reader.readuntil(b"\r\n\r\n")
            head = parse_head(data)
        except (BadHead, HostRefused, asyncio.LimitOverrunError) as error:
            reason = str(error) if not isinstance(error, asyncio.LimitOverrunError) else "head_too_long"
            await self._say(None, reason, asked(data))
            await _refuse(writer, 400 if isinstance(error, BadHead) else 403, reason)
            return
        try:
            address = await self._judge(head)
            upstream = await self._connect(head.target, address)
        except (HostRefused, OSError, TimeoutError) as error:
            refused = isinstance(error, HostRefused)
            await self._say(head, str(error) if refused else "unreachable")
            await _refuse(writer, 403 if refused else 502, str(error) if refused else "unreachable")
            return
        try:
            await self._pass(head, reader, writer, *upstream)
        finally:
            upstream[1].transport.abort()

    async def _judge(self, head: Head) -> str:
        """Return the address to connect to. The order is the point: name, then look-up, then address."""
        check(self.rules, head.target)
        addresses = await self.resolve(head.target.host, head.target.port)
        if not addresses:
            raise OSError("no address")
        if not all(self.allowed(address) for address in addresses):
            raise HostRefused("address_not_public")
        return addresses[0]

    async def _connect(self, target: Target, address: str) -> Streams:
        async with asyncio.timeout(CONNECT_S):
            return await self.connect(address, target.port)

    async def _pass(
        self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
        from_origin: asyncio.StreamReader, to_origin: asyncio.StreamWriter,
    ) -> None:  # fmt: skip
        if head.method != "CONNECT":
            await self._say(head, None)
            to_origin.write(head.forwarded)
            await _splice(_limited(head, reader, to_origin), _copy(from_origin, writer))
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        if head.target.port == HTTPS:
            begun = await self._hello(head, reader, writer)
            if begun is None:
                return
            to_origin.write(begun)
        await self._say(head, None)
        await _splice(_copy(reader, to_origin), _copy(from_origin, writer))

    async def _hello(self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
        """Return the ClientHello's bytes if it names the host that was asked for."""
        begun = bytearray()
        try:
            async with asyncio.timeout(HELLO_S):
                while (name := server_name(bytes(begun))) is None:
                    piece = await reader.read(CHUNK)
                    if not piece:
                        return None
                    begun += piece
            if not name or normal_host(name) != head.target.host:
                raise HostRefused("server_name_differs" if name else "no_server_name")
        except (NotTls, HostRefused, TimeoutError) as error:
            reason = str(error) if isinstance(error, HostRefused) else "not_tls"
            await self._say(head, reason)
            writer.transport.abort()
            return None
        return bytes(begun)

    async def _say(self, head: Head | None, reason: str | None, asked_for: str | None = None) -> None:
        said: dict[str, Any] = {"allowed": reason is None, "reason": reason}
        if asked_for is not None:
            said["asked"] = asked_for
        if head is not None:
            said |= {"host": head.target.host, "port": head.target.port, "method": head.method}
            if head.path:
                said["path"] = head.path[:1000]
        await self.decide(said)


async def _refuse(writer: asyncio.StreamWriter, status: int, reason: str) -> None:
    body = f"workstead: {reason}\n".encode()
    head = f"HTTP/1.1 {status} Refused\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    with contextlib.suppress(OSError):
        await writer.drain()
        writer.write_eof()


async def _splice(*ways: Awaitable[None]) -> None:
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        async with asyncio.timeout(IDLE_S):
            piece = await reader.read(CHUNK)
        if not piece:
            break
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _limited(head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass the request's body and nothing after it: a second request on the connection was not judged."""
    left = head.length or 0
    if head.chunked:
        await _chunks(reader, writer)
        return
    while left:
        async with asyncio.timeout(IDLE_S):
            piece = await reader.read(min(left, CHUNK))
        if not piece:
            return
        left -= len(piece)
        writer.write(piece)
        await writer.drain()


async def _chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        async with asyncio.timeout(IDLE_S):
            line = await reader.readuntil(b"\r\n")
            digits = line.strip().split(b";")[0]
            if not digits or len(digits) > 8 or any(d not in b"0123456789abcdefABCDEF" for d in digits):
                return
            size = int(digits, 16)
            writer.write(b"%x\r\n" % size)
            left = size + 2
            while left:
                piece = await reader.readexactly(min(left, CHUNK))
                left -= len(piece)
                writer.write(piece)
                await writer.drain()
        if size == 0:
            return
