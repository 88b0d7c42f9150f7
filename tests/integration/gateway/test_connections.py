"""Connections to providers: kept and used again, closed where they cannot be, bounded in number and in what they hold."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import httpcore
import pytest

from service.gateway.connections import Begun, Bounds, Connections
from service.gateway.wires import MOST_HELD, Wire

BOUNDS = Bounds(most=8, most_idle=4, connect_s=20.0, keep_s=60.0)
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class _Server:
    port: int = 0
    connections: int = 0
    heard: list[bytes] = field(default_factory=list[bytes])
    came: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def _server(talk: Talk) -> AsyncGenerator[_Server]:
    made = _Server()

    talking: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.connections += 1
        made.came.set()
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await talk(reader, writer)
                while await reader.read(1 << 16):
                    pass
        finally:
            made.gone.set()
            writer.close()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talking.add(asyncio.create_task(one(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        try:
            yield made
        finally:
            for task in talking:
                task.cancel()
            await asyncio.gather(*talking, return_exceptions=True)


@asynccontextmanager
async def _connections(bounds: Bounds = BOUNDS) -> AsyncGenerator[Connections]:
    async def itself(host: str, port: int) -> str:
        del port
        return host

    made = Connections(bounds, ssl.create_default_context(), itself)
    try:
        yield made
    finally:
        await made.close()


def _request(server: _Server, body: bytes = b"", write_s: float = 20.0) -> httpcore.Request:
    headers = [(b"host", b"x"), (b"content-length", str(len(body)).encode())]
    timeouts = {"timeout": {"write": write_s, "read": None}}
    return httpcore.Request(
        "POST", f"http://127.0.0.1:{server.port}/", headers=headers, content=body, extensions=timeouts
    )


async def _answer(begun: Begun) -> bytes:
    return b"".join([piece async for piece in begun.response.aiter_stream()])


async def _asked(connections: Connections, server: _Server, body: bytes = b"") -> bytes:
    begun = await connections.begin(_request(server, body))
    try:
        return await _answer(begun)
    finally:
        await connections.end(begun)


async def _answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while head := await reader.readuntil(b"\r\n\r\n"):
        size = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(size)
        writer.write(OK)


async def test_one_connection_serves_one_request_after_the_other() -> None:
    async with _server(_answering) as server, _connections() as connections:
        assert [await _asked(connections, server, b"x" * n) for n in (0, 5, 200_000)] == [b"ok"] * 3
        assert server.connections == 1
        both = await asyncio.gather(_asked(connections, server), _asked(connections, server))
        assert (both, server.connections) == ([b"ok", b"ok"], 2)


@pytest.mark.parametrize("words", [b"", b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"])
async def test_one_that_ended_or_spoke_unasked_is_not_used_again(words: bytes) -> None:
    spoken = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await spoken.wait()
        writer.write(words)
        writer.write_eof()

    async with _server(talk) as server, _connections() as connections:
        begun = await connections.begin(_request(server))
        wire = cast("Wire", begun.response.extensions["network_stream"])
        assert await _answer(begun) == b"ok"
        await connections.end(begun)
        spoken.set()
        async with asyncio.timeout(20):
            while not wire.get_extra_info("is_readable"):  # noqa: ASYNC110 - it has no event for it
                await asyncio.sleep(0.001)
        assert await _asked(connections, server) == b"ok"
        assert server.connections == 2


async def test_one_whose_answer_nobody_waits_for_is_closed_and_its_place_is_free() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no")

    async with _server(talk) as server, _connections(replace(BOUNDS, most=1)) as connections:
        asking = asyncio.create_task(_asked(connections, server))
        await asyncio.wait_for(server.came.wait(), 20)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.wait_for(server.gone.wait(), 20)
        for _ in range(2):
            await connections.end(await connections.begin(_request(server)))
        assert server.connections == 3


async def test_more_requests_than_places_wait_and_then_say_so() -> None:
    async with _server(_answering) as server, _connections(replace(BOUNDS, most=1, connect_s=0.05)) as connections:
        first = await connections.begin(_request(server))
        with pytest.raises(httpcore.PoolTimeout):
            await connections.begin(_request(server))
        await connections.end(first)
        assert await _asked(connections, server) == b"ok"


async def test_what_rests_is_bounded_and_ends() -> None:
    bounds = replace(BOUNDS, most_idle=1, keep_s=0.0)
    async with _server(_answering) as server, _connections(bounds) as connections:
        await asyncio.gather(*(_asked(connections, server) for _ in range(3)))
        await asyncio.wait_for(server.gone.wait(), 20)
        assert await _asked(connections, server) == b"ok"
        assert server.connections == 4


async def test_a_reader_who_does_not_read_stops_the_writing_and_a_slow_one_of_ours_the_sender() -> None:
    """Neither side's buffers grow with what the other sends."""
    size = 64 << 20
    written: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"content-length: 0\r\n" not in head:
            await asyncio.sleep(60)  # reads no more
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(size >> 16):
            writer.write(b"x" * (1 << 16))
            await writer.drain()
            written.append(1)

    async with _server(talk) as server, _connections() as connections:
        with pytest.raises(httpcore.WriteTimeout):
            await connections.begin(_request(server, b"x" * size, write_s=0.05))
        begun = await connections.begin(_request(server))
        before = -1
        while before != len(written):  # until the sender has to wait
            before = len(written)
            await asyncio.sleep(0.1)
        assert before < size >> 17
        got = 0
        async for piece in begun.response.aiter_stream():
            assert len(piece) <= MOST_HELD
            got += len(piece)
        await connections.end(begun)
        assert (got, len(written)) == (size, size >> 16)


async def test_nobody_there_is_a_connect_error() -> None:
    async with _server(_answering) as server:
        pass
    async with _connections() as connections:
        with pytest.raises(httpcore.ConnectError):
            await connections.begin(_request(server))
