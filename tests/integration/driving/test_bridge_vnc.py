"""The way through to a screen's VNC server: whoever leaves, or takes nothing, ends it."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from service.desktop.environment import VNC_PORT
from service.lifecycle.bridge_frames import BridgeBroken, Frame, read_frame, write_frame
from service.sandboxes.contract import SandboxSpec, ToolFailed
from service.testing.memory_sandbox import MemoryBackend, MemoryHost, MemorySandbox
from service.workers import bridge_vnc
from service.workers.bridge_vnc import pass_through

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


Place = tuple[MemoryHost, MemorySandbox]


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    host = MemoryHost()
    backend = MemoryBackend(host)
    made = await backend.make(SandboxSpec(await backend.resolve_image("base")))
    yield host, made
    await backend.remove(made.id)
    host.close()


@asynccontextmanager
async def pair() -> AsyncGenerator[tuple[Streams, Streams]]:
    """Give a caller's streams, and the bridge's at the other end."""
    ours, theirs = socket.socketpair()
    caller, bridge = await asyncio.open_connection(sock=ours), await asyncio.open_connection(sock=theirs)
    try:
        yield caller, bridge
    finally:
        for _, writer in (caller, bridge):
            writer.transport.abort()


@asynccontextmanager
async def through(place: Place, serve: Serve) -> AsyncGenerator[tuple[Streams, "asyncio.Task[Frame]"]]:
    """Give a viewer's streams, and what comes of the call, with ``serve`` as the VNC server."""
    host, sandbox = place
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host.ports[VNC_PORT] = server.sockets[0].getsockname()[1]
    async with pair() as (caller, bridge):
        call = asyncio.create_task(pass_through(sandbox, *bridge))
        try:
            yield caller, call
        finally:
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            server.close()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data.upper())
        await writer.drain()
    writer.close()


async def test_bytes_go_both_ways_in_order(place: Place) -> None:
    said = bytes(range(97, 123)) * 100_000
    async with through(place, echo) as ((reader, writer), _):

        async def write() -> None:
            for at in range(0, len(said), 100_000):
                await write_frame(writer, Frame({}, said[at : at + 100_000]))

        writing = asyncio.create_task(write())
        heard = bytearray()
        async with asyncio.timeout(30):
            while len(heard) < len(said):
                frame = await read_frame(reader)
                assert len(frame.body) <= 65536
                heard += frame.body
        await writing
        assert heard == said.upper()


async def test_a_screen_that_closes_ends_it(place: Place) -> None:
    async def rude(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"RFB 003.008\n")
        writer.close()

    async with through(place, rude) as ((reader, _), call):
        assert (await read_frame(reader)).body == b"RFB 003.008\n"
        assert (await asyncio.wait_for(call, 10)).head == {"done": {"ended": "screen"}}


async def test_a_viewer_that_leaves_leaves_no_connection(place: Place) -> None:
    ended = asyncio.Event()

    async def patient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        ended.set()

    async with through(place, patient) as ((_, writer), call):
        writer.close()
        with pytest.raises(BridgeBroken):
            await asyncio.wait_for(call, 10)
        await asyncio.wait_for(ended.wait(), 10)


async def test_a_viewer_that_never_reads_is_cut(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_vnc, "STUCK_S", 0.5)
    sent = 0

    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        try:
            while True:
                writer.write(bytes(65536))
                await writer.drain()
                sent += 65536
        except ConnectionError:
            writer.close()

    async with through(place, flood) as (_, call):
        with pytest.raises(BridgeBroken, match="took nothing"):
            await asyncio.wait_for(call, 20)
        assert sent < 32 << 20


async def test_a_screen_that_never_reads_is_given_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_vnc, "STUCK_S", 0.5)
    over = asyncio.Event()

    async def deaf(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.transport.abort()

    async with through(place, deaf) as ((_, writer), call):
        talking = asyncio.create_task(write_frame(writer, Frame({}, bytes(32 << 20))))
        await asyncio.wait({call}, timeout=30)
        talking.cancel()
        with pytest.raises(ToolFailed) as stuck:
            await call
        assert stuck.value.type == "screen_stuck"
        over.set()


async def test_nobody_listens(place: Place) -> None:
    async with pair() as (_, bridge):
        with pytest.raises(ToolFailed) as closed:
            await pass_through(place[1], *bridge)
    assert closed.value.type == "port_closed"
