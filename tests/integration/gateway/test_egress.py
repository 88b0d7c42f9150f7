"""The egress proxy on real sockets, with origins of our own behind names that only the test resolves."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from service.domain.policies import NetworkRules
from service.domain.public_urls import is_global
from service.domain.tasks import NetworkPolicy
from service.gateway.egress.proxy import EgressProxy, Streams
from tests.integration.gateway.certificates import server_context

WEB = NetworkRules(policy=NetworkPolicy.WEB, deny_hosts=["denied.example.org"])
NAMES = {
    "example.com": ["127.0.0.1"],
    "other.example.com": ["127.0.0.1"],
    "inside.example.com": ["10.1.2.3"],
    "mixed.example.com": ["127.0.0.1", "169.254.169.254"],
}


@dataclass
class World:
    port: int
    decisions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    resolved: list[str] = field(default_factory=list[str])
    received: list[bytes] = field(default_factory=list[bytes])

    async def say(self, data: bytes) -> bytes:
        """Send bytes to the proxy and read to the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            async with asyncio.timeout(10):
                return await reader.read()
        finally:
            writer.close()

    async def origin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        self.received.append(head + await reader.readexactly(length))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def world(tls: ssl.SSLContext | None = None) -> AsyncGenerator[World]:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    found = World(listener.getsockname()[1])
    server = await asyncio.start_server(found.origin, "127.0.0.1", 0, ssl=tls)
    port: int = server.sockets[0].getsockname()[1]

    async def resolve(host: str, asked: int) -> list[str]:
        assert asked in (80, 443)
        found.resolved.append(host)
        return NAMES[host]

    async def connect(address: str, _: int) -> Streams:
        assert address == "127.0.0.1"
        return await asyncio.open_connection(address, port)

    async def decide(payload: dict[str, Any]) -> None:
        found.decisions.append(payload)

    proxy = EgressProxy(WEB, decide, resolve, connect, lambda address: is_global(address) or address == "127.0.0.1")
    await proxy.serve(listener)
    try:
        yield found
    finally:
        await proxy.close()
        server.close()


async def test_plain_http_goes_to_the_named_host_and_is_told() -> None:
    async with world() as w:
        answer = await w.say(
            b"GET http://example.com/a?b HTTP/1.1\r\nHost: evil.example\r\n\r\nGET http://x/ HTTP/1.1\r\n\r\n"
        )
        assert answer.endswith(b"hi")
        (received,) = w.received
        assert received.startswith(b"GET /a?b HTTP/1.1\r\nhost: example.com\r\n")
        assert b"evil" not in received
        (said,) = w.decisions
        assert (said["allowed"], said["host"], said["path"]) == (True, "example.com", "/a?b")


@pytest.mark.parametrize(
    "body", [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"]
)
async def test_a_body_is_passed_and_nothing_after_it(body: bytes) -> None:
    async with world() as w:
        answer = await w.say(
            b"POST http://example.com/ HTTP/1.1\r\n" + body + b"POST http://other.example.com/ HTTP/1.1\r\n\r\n"
        )
        assert answer.endswith(b"hi")
        (received,) = w.received
        assert b"other.example.com" not in received
        if b"chunked" not in body:
            assert received.endswith(b"\r\n\r\nhello")


@pytest.mark.fault(51)
@pytest.mark.parametrize("host", ["inside.example.com", "mixed.example.com"])
async def test_a_name_behind_which_any_address_is_not_public_is_denied(host: str) -> None:
    async with world() as w:
        answer = await w.say(f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403")
        assert w.decisions[0]["reason"] == "address_not_public"


@pytest.mark.fault(48, 54)
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"CONNECT denied.example.org:443", "denied_by_benchmark"), (b"CONNECT example.com:22", "port_not_allowed"),
        (b"CONNECT 169.254.169.254:80", "address_instead_of_name"), (b"CONNECT localhost.:80", "local_name"),
        (b"GET http://[fd00::1]/", "address_instead_of_name"), (b"GET /etc/passwd", "not_a_proxy_request"),
    ],
)  # fmt: skip
async def test_what_is_denied_is_never_resolved(line: bytes, reason: str) -> None:
    async with world() as w:
        answer = await w.say(line + b" HTTP/1.1\r\n\r\n")
        assert answer.split(b" ")[1] in (b"403", b"400")
        assert w.resolved == []
        assert [d["reason"] for d in w.decisions] == [reason]
        assert not w.decisions[0]["allowed"]


async def tunnel(w: World, asked: str, name: str, context: ssl.SSLContext) -> bytes:
    """CONNECT to ``asked``, speak TLS to ``name``; return what the origin said."""
    reader, writer = await asyncio.open_connection("127.0.0.1", w.port)
    try:
        writer.write(f"CONNECT {asked}:443 HTTP/1.1\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        async with asyncio.timeout(10):
            await writer.start_tls(context, server_hostname=name)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.fault(55)
async def test_tls_must_name_the_host_that_was_asked_for(tmp_path: Path) -> None:
    serving, trusting = server_context(tmp_path, ["example.com", "other.example.com"])
    async with world(serving) as w:
        assert (await tunnel(w, "example.com", "example.com", trusting)).endswith(b"hi")
        assert w.decisions[-1]["allowed"]
        with pytest.raises((ssl.SSLError, OSError)):
            await tunnel(w, "example.com", "other.example.com", trusting)
        assert w.decisions[-1]["reason"] == "server_name_differs"
        assert len(w.received) == 1


async def test_no_name_and_no_tls_are_refused() -> None:
    async with world() as w:
        for first, reason in ((b"GET / HTTP/1.1\r\n\r\n", "not_tls"), (b"SSH-2.0-client\r\n", "not_tls")):
            answer = await w.say(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n" + first)
            assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n"
            assert w.decisions[-1]["reason"] == reason
        assert w.received == []


async def test_closing_cuts_what_is_open() -> None:
    async with world() as w:
        reader, writer = await asyncio.open_connection("127.0.0.1", w.port)
        writer.write(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()
