"""The hand-over of listeners: what outlives a worker, and what a worker does for a new gateway."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.domain.errors import Conflict, Unavailable
from service.domain.grants import GrantedModel
from service.gateway.control import bind
from service.gateway.egress.serving import EgressServing
from service.gateway.front import NoServices
from service.gateway.http_server import HttpServing
from service.gateway.place import Place
from service.gateway.process import Gateway
from service.lifecycle.gate_wire import Wire, WireClosed
from service.workers.gateway_link import GatewayLink
from tests.integration.gateway.bench import TOKEN, GateBench, messages, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Sandbox:
    """Where listeners are planted: port 80 is always the same one outside."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.planted = 0

    async def plant(self, port: int) -> socket.socket:
        assert port == 80
        self.planted += 1
        return socket.create_server(("127.0.0.1", self.port))

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", headers={"x-api-key": TOKEN}, timeout=20)


async def nothing_found(project_id: str, names: list[str]) -> list[GrantedModel]:
    return []


@asynccontextmanager
async def gateway(bench: GateBench, folder: Path) -> AsyncGenerator[Gateway]:
    place = Place.take(folder, None)
    made = Gateway(bench.parts, NoServices(), place, nothing_found, HttpServing(64), EgressServing(bench.db))
    stop = asyncio.Event()
    running = asyncio.create_task(made.run(stop))
    try:
        yield made
    finally:
        stop.set()
        await running
        place.close()


@asynccontextmanager
async def linked(folder: Path) -> AsyncGenerator[GatewayLink]:
    link = GatewayLink(folder)
    running = asyncio.create_task(link.run())
    try:
        yield link
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def test_a_stream_outlives_the_worker_and_the_next_one_plants_nothing(bench: GateBench, tmp_path: Path) -> None:
    bench.key.value = "sk-scripted-slow"
    grant, sandbox = await bench.grant(), Sandbox()
    async with gateway(bench, tmp_path), sandbox.client() as client:
        async with linked(tmp_path) as link:
            await link.open(grant, sandbox.plant)
            stream = asyncio.create_task(client.post("/v1/messages", json=messages(stream=True)))
            await until(bench.asked)
        assert not stream.done()
        async with linked(tmp_path) as link:
            newer = grant.model_copy(update={"fence": grant.fence + 5})
            await link.open(newer, sandbox.plant)
            assert sandbox.planted == 1
            assert (await stream).status_code == 200
            assert (await link.state(grant.run_id, grant.attempt)).requests == 1
            with pytest.raises(Conflict):
                await link.open(grant, sandbox.plant)
            await link.close(grant.run_id, grant.attempt)
            assert (await client.post("/v1/messages", json=messages())).status_code == 401


async def test_a_new_gateway_gets_everything_anew(bench: GateBench, tmp_path: Path) -> None:
    grant, sandbox = await bench.grant(budget={"max_requests": 2}), Sandbox()
    async with linked(tmp_path) as link:
        async with gateway(bench, tmp_path), sandbox.client() as client:
            await link.open(grant, sandbox.plant)
            assert (await client.post("/v1/messages", json=messages())).status_code == 200
            ended = asyncio.create_task(link.ended(grant.run_id, grant.attempt))
        async with sandbox.client() as client:
            with pytest.raises(httpx.ConnectError):
                await client.post("/v1/messages", json=messages())
        assert (await link.state(grant.run_id, grant.attempt)).requests == 0, "nobody there: nothing is known"
        async with gateway(bench, tmp_path), sandbox.client() as client:
            codes = [await _asked(client) for _ in range(2)]
            assert codes == [200, 400]
            assert sandbox.planted == 2
            assert (await ended).budget_exhausted


async def test_without_a_gateway_a_worker_says_so(
    bench: GateBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.workers.gateway_link.WAIT_S", 0.3)
    grant, sandbox = await bench.grant(), Sandbox()
    async with linked(tmp_path) as link:
        with pytest.raises(Unavailable):
            await link.open(grant, sandbox.plant)
        await link.close(grant.run_id, grant.attempt)
        assert sandbox.planted == 0


async def test_one_gateway_per_directory(tmp_path: Path) -> None:
    first = Place.take(tmp_path, None)
    with pytest.raises(Conflict):
        Place.take(tmp_path, None)
    first.close()
    again = Place.take(tmp_path, None)
    assert again.service_token == first.service_token
    assert (tmp_path / "service-token").stat().st_mode & 0o777 == 0o600
    again.close()


async def test_the_control_socket_is_ours_only(
    bench: GateBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(bench, tmp_path):
        assert (tmp_path / "control.sock").stat().st_mode & 0o777 == 0o600
        monkeypatch.setattr(Wire, "peer_uid", _somebody)
        wire = await _dial(tmp_path / "control.sock")
        with pytest.raises(WireClosed):
            await wire.receive()
        wire.close()


async def test_what_cannot_be_understood_does_no_harm(bench: GateBench, tmp_path: Path) -> None:
    async with gateway(bench, tmp_path):
        wire = await _dial(tmp_path / "control.sock")
        nonsense: list[dict[str, Any]] = [
            {"do": "dance"},
            {},
            {"do": "open", "grant": {}, "ports": [80]},
            {"do": "close"},
        ]
        for message in nonsense:
            await wire.send({"id": 1, **message})
            answer, _ = await wire.receive()
            assert answer["error"] == "bad_message"
        wire.close()
        for garbage in (b"\xff" * 64, b"\0\0\0\x02{}", b"\0\0\0\x05null!"):
            sock = await _connected(tmp_path / "control.sock")
            await asyncio.get_running_loop().sock_sendall(sock, garbage)
            assert await asyncio.get_running_loop().sock_recv(sock, 10) == b""
            sock.close()


async def test_descriptors_travel_with_their_message(tmp_path: Path) -> None:
    listener = bind(tmp_path / "s.sock")
    loop = asyncio.get_running_loop()
    one = Wire(await _connected(tmp_path / "s.sock"))
    two = Wire((await loop.sock_accept(listener))[0])
    with socket.create_server(("127.0.0.1", 0)) as sent:
        big = "x" * 500_000
        sending = asyncio.create_task(
            _send_all(one, [({"n": 0, "big": big}, []), ({"n": 1}, [sent.fileno()]), ({"n": 2}, [])])
        )
        found = [await two.receive() for _ in range(3)]
        await sending
    assert [(message["n"], len(fds)) for message, fds in found] == [(0, 0), (1, 1), (2, 0)]
    with socket.socket(fileno=found[1][1][0]) as received:
        assert received.getsockname()[0] == "127.0.0.1"
    for wire in (one, two):
        wire.close()
    listener.close()


def _somebody(wire: Wire) -> int:
    return 12345


async def _send_all(wire: Wire, messages_: list[tuple[dict[str, Any], list[int]]]) -> None:
    for message, fds in messages_:
        await wire.send(message, fds)


async def _asked(client: httpx.AsyncClient) -> int:
    """Ask as an agent's program does: it tries again while nobody listens."""
    for _ in range(100):
        with contextlib.suppress(httpx.ConnectError):
            return (await client.post("/v1/messages", json=messages())).status_code
        await asyncio.sleep(0.05)
    raise TimeoutError


async def _connected(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    await asyncio.get_running_loop().sock_connect(sock, str(path))
    return sock


async def _dial(path: Path) -> Wire:
    return Wire(await _connected(path))
