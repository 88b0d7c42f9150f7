"""While a provider keeps everybody waiting: what streams are told, whose failure it is, and side models."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.domain.grants import Grant
from service.domain.models import Dialect
from service.gateway.control import bind
from service.gateway.front import Front, NoServices
from service.gateway.http_server import HttpServing
from service.gateway.limits import GatewayLimits
from service.gateway.sides import OwnSide
from service.models.scripted.server import Scripted
from tests.api.helpers import served
from tests.integration.gateway.bench import GateBench, messages, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
QUICK = GatewayLimits(first_pause_s=0.05, last_pause_s=0.2, keep_alive_s=0.1, stalled_s=30)
START = (
    b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}\n\n'
)
END = b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'


@dataclass
class Silent:
    """A provider that sends its status, then pieces, each when the test says so."""

    content_type: str = "text/event-stream"
    status: int = 200
    go: asyncio.Event = field(default_factory=asyncio.Event)
    pieces: list[bytes] = field(default_factory=lambda: [START, END])
    before: int = 0
    """Pieces that come at once."""
    broken: bool = False
    mute: bool = False
    """Not even the status comes before."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await receive()
        if self.mute:
            await asyncio.wait_for(self.go.wait(), 20)
        headers = [(b"content-type", self.content_type.encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        for n, piece in enumerate(self.pieces):
            if n == self.before:
                await send({"type": "http.response.body", "body": b"", "more_body": True})
                await asyncio.wait_for(self.go.wait(), 20)
                if self.broken:
                    raise RuntimeError("broken off")
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def opened(
    url: str, provider: Scripted, folder: Path, silent: Silent, dialect: Dialect = Dialect.ANTHROPIC
) -> AsyncGenerator[tuple[GateBench, Grant, httpx.AsyncClient]]:
    async with (
        served(silent) as base,  # pyright: ignore[reportArgumentType] - any ASGI application
        GateBench.open(url, provider, folder, QUICK) as bench,
    ):
        grant = await bench.grant(models=[bench.model(dialect, base_url=base)])
        yield bench, grant, await bench.client(grant)


async def test_a_silent_stream_says_that_it_goes_on(database_url: str, provider: Scripted, tmp_path: Path) -> None:
    silent = Silent()
    async with opened(database_url, provider, tmp_path, silent) as (bench, grant, client):
        got = await read(client, silent, comments=2)
        assert got.replace(b": keep-alive\n\n", b"") == START + END
        (row,) = await bench.ledger_of(grant)
        assert (row.status, row.error, row.input_tokens, row.output_tokens) == (200, None, 7, 3)


async def read(client: httpx.AsyncClient, silent: Silent, comments: int) -> bytes:
    """Return all that comes; the provider goes on after so many comments."""
    got = b""
    async with client.stream("POST", "/v1/messages", json=messages(stream=True)) as answer:
        assert answer.status_code == 200
        async for piece in answer.aiter_raw():
            got += piece
            if got.count(b": keep-alive\n\n") >= comments:
                silent.go.set()
    return got


async def test_nothing_goes_into_the_middle_of_an_event(database_url: str, provider: Scripted, tmp_path: Path) -> None:
    silent = Silent(pieces=[START[:30], START[30:], END], before=1)
    async with opened(database_url, provider, tmp_path, silent) as (_, _, client):
        asking = asyncio.create_task(client.post("/v1/messages", json=messages(stream=True)))
        await asyncio.sleep(0.5)
        silent.go.set()
        assert (await asking).content == START + END


@pytest.mark.parametrize(
    ("silent", "dialect", "path", "body"),
    [
        (Silent(content_type="application/json", pieces=[b'{"type":"message"}']), Dialect.ANTHROPIC, "/v1/messages", messages()),
        (Silent(status=400, pieces=[b'{"type":"error"}']), Dialect.ANTHROPIC, "/v1/messages", messages(stream=True)),
        (Silent(pieces=[b'data: {"candidates":[]}\n\n']), Dialect.GEMINI, "/v1beta/models/gemini-1:streamGenerateContent?alt=sse", {"contents": []}),
    ],
    ids=["json", "error", "gemini"],
)  # fmt: skip
async def test_what_takes_no_comments_gets_none(
    database_url: str, provider: Scripted, tmp_path: Path, silent: Silent, dialect: Dialect, path: str, body: Any
) -> None:
    silent.go = asyncio.Event()
    async with opened(database_url, provider, tmp_path, silent, dialect) as (_, _, client):
        asking = asyncio.create_task(client.post(path, json=body))
        await asyncio.sleep(0.5)
        silent.go.set()
        answer = await asking
        assert (answer.status_code, answer.content) == (silent.status, silent.pieces[0])


async def test_no_status_goes_out_before_the_providers(bench: GateBench) -> None:
    """However long it is waited for: an error stays an error."""
    bench.begin("e503")
    client = await bench.client(await bench.grant(budget={"provider_patience_s": 1.0}))
    answer = await client.post("/v1/messages", json=messages(stream=True))
    assert (answer.status_code, answer.json()["type"]) == (503, "error")


async def test_a_stream_that_breaks_after_comments_is_a_cut_stream(
    database_url: str, provider: Scripted, tmp_path: Path
) -> None:
    silent = Silent(broken=True)
    async with opened(database_url, provider, tmp_path, silent) as (bench, grant, client):
        with pytest.raises(httpx.RemoteProtocolError):
            await read(client, silent, comments=1)
        (row,) = await bench.ledger_of(grant)
        assert (row.error, row.provider_error, row.tries) == ("upstream_cut", True, 1)


async def leave(client: httpx.AsyncClient, after_s: float, **body: Any) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(client.post("/v1/messages", json=messages(**body)), after_s)
        pytest.fail("it was answered")


async def test_a_client_that_leaves_a_failing_provider_has_not_failed(bench: GateBench) -> None:
    bench.begin("e503")
    grant = await bench.grant(budget={"provider_patience_s": 60})
    client, key = await bench.client(grant), (grant.run_id, grant.attempt)
    ended = asyncio.create_task(bench.endpoints.ended(key))
    asking = asyncio.create_task(client.post("/v1/messages", json=messages()))
    await until(lambda: len(bench.asked()) > 1, 30)  # it was refused, and asked again
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await until(lambda: bench.endpoints.state(key).provider_failed)
    assert not ended.done()  # it may ask again
    (row,) = await bench.ledger_of(grant)
    assert (row.error, row.provider_error) == ("client_gone", True)
    bench.key.value = "sk-scripted-text"
    assert (await client.post("/v1/messages", json=messages())).status_code == 200
    assert not bench.endpoints.state(key).provider_failed
    ended.cancel()


async def test_a_client_that_leaves_a_thinking_model_buys_nothing(
    database_url: str, provider: Scripted, tmp_path: Path
) -> None:
    silent = Silent(content_type="application/json", mute=True)
    async with opened(database_url, provider, tmp_path, silent) as (bench, grant, client):
        key = (grant.run_id, grant.attempt)
        await leave(client, 0.5)
        await until(lambda: bench.endpoints.state(key).open_requests == 0)
        assert not bench.endpoints.state(key).provider_failed
        (row,) = await bench.ledger_of(grant)
        assert (row.error, row.provider_error) == ("client_gone", False)
        silent.go.set()


@pytest.mark.parametrize(("purpose", "ends"), [("client", True), ("judge", False)])
async def test_a_simulated_clients_failure_is_the_attempts(
    bench: GateBench, tmp_path: Path, purpose: str, ends: bool
) -> None:
    async def find(project_id: str, names: list[str]) -> Any:
        return [bench.model()]

    bench.begin("e503")
    grant = await bench.grant(budget={"provider_patience_s": 0.3})
    await bench.endpoints.open(grant, {})
    key = (grant.run_id, grant.attempt)
    front = Front(bench.forwarding, NoServices(), OwnSide(bench.endpoints, "service-token", find, 0.3).admit)
    listening = await HttpServing(16).start(front, bind(tmp_path / "models.sock"))
    transport = httpx.AsyncHTTPTransport(uds=str(tmp_path / "models.sock"))
    headers = {
        "x-api-key": "service-token", "x-workstead-project": grant.project_id, "x-workstead-purpose": purpose,
        "x-workstead-model": "test/anthropic", "x-workstead-run": f"{grant.run_id}/{grant.attempt}",
    }  # fmt: skip
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=10) as client:
        answer = await client.post("/v1/messages", json=messages(), headers=headers)
        assert (answer.status_code, "provider_unavailable" in json.dumps(answer.json())) == (503, True)
        state = bench.endpoints.state(key)
        assert (state.provider_failed, state.provider_wait_s > 0) == (ends, ends)
        if ends:
            assert (await asyncio.wait_for(bench.endpoints.ended(key), 5)).provider_failed
            bench.key.value = "sk-scripted-slow"
            asking = asyncio.create_task(client.post("/v1/messages", json=messages(stream=True), headers=headers))
            await until(lambda: bench.endpoints.state(key).open_requests == 1)
            await bench.endpoints.close(key, grant.fence)
            assert (await asking).status_code == 401  # the attempt's end is its client's
    await listening.close()
