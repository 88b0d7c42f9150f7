"""The event log over HTTP: pages, streams, resumption, ends."""

import asyncio
import json
import random
import socket
import statistics
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from service.api import event_stream, sse
from service.domain.errors import Unavailable
from service.domain.events import NewEvent
from service.store import events
from tests.api.helpers import Tenant

SSE = {"Accept": "text/event-stream"}


async def frames(response: httpx.Response) -> AsyncIterator[dict[str, str]]:
    """Parse the frames of a stream as a browser would."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if not line:
            if fields:
                yield fields
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")


@asynccontextmanager
async def opened(address: str, headers: dict[str, str]) -> AsyncGenerator[httpx.Response]:
    async with (
        httpx.AsyncClient(timeout=20) as client,
        client.stream("GET", address, headers=SSE | headers) as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield response


async def collect(url: str, tenant: Tenant, run_id: str, query: str = "") -> list[dict[str, str]]:
    async with opened(f"{url}/v1/runs/{run_id}/events{query}", tenant.bearer) as response:
        return [f async for f in frames(response)]


async def test_pages(tenant: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    await tenant.say(attempt, *[f"line {i}\n" for i in range(10)])
    path = f"/v1/runs/{run['id']}/events"
    seen: list[dict[str, Any]] = []
    page: Any = {"next": f"{path}?limit=4"}
    while link := page["next"]:
        page = await tenant.get(link)
        seen += page["data"]
    last: int = page["last_seq"]
    assert [e["seq"] for e in seen] == list(range(1, last + 1))
    assert (page["next_after"], page["finished"]) == (last, False)
    assert {"run_id", "seq", "attempt", "ts", "type", "v", "payload"} == set(seen[0])
    only = await tenant.get(f"{path}?types=output")
    assert [e["payload"]["text"] for e in only["data"]] == [f"line {i}\n" for i in range(10)]
    coarse = await tenant.get(f"{path}?detail=coarse")
    assert {e["type"] for e in coarse["data"]} & {"output", "resources"} == set()
    assert coarse["data"]
    assert (await tenant.get(f"{path}?types=output&detail=coarse"))["data"] == []
    await tenant.finish(run["id"])
    assert (await tenant.get(path))["finished"] is True


async def test_a_stream_tells_everything_and_its_end(tenant: Tenant, url: str) -> None:
    run = await tenant.run()
    reading = asyncio.create_task(collect(url, tenant, run["id"]))
    attempt = await tenant.start(run["id"])
    for i in range(5):
        await tenant.say(attempt, f"{i}\r\n\u2028\ud7ff", first=i)
        await asyncio.sleep(0.01)
    await tenant.finish(run["id"])
    found = await asyncio.wait_for(reading, 10)
    assert found[0] == {"retry": "1000"}
    assert found[-1]["event"] == "end"
    last = json.loads(found[-1]["data"])
    assert (last["phase"], last["outcome"]) == ("done", "ungraded")
    numbers = [int(f["id"]) for f in found[1:-1]]
    assert numbers == list(range(1, last["last_seq"] + 1))
    texts = [json.loads(f["data"])["payload"].get("text") for f in found[1:-1]]
    assert [t for t in texts if t] == [f"{i}\r\n\u2028\ud7ff" for i in range(5)]


async def test_the_end_comes_after_the_last_of_many_batches(
    tenant: Tenant, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "BATCH", 3)
    run = await tenant.run()
    await tenant.say(await tenant.start(run["id"]), *map(str, range(10)))
    await tenant.finish(run["id"])
    found = await collect(url, tenant, run["id"])
    last = json.loads(found[-1]["data"])["last_seq"]
    assert [int(f["id"]) for f in found[1:-1]] == list(range(1, last + 1))


async def test_a_reconnect_at_the_end_is_204(tenant: Tenant, url: str) -> None:
    run = await tenant.run()
    await tenant.finish(run["id"])
    found = await collect(url, tenant, run["id"])
    last = found[-2]["id"]
    for headers, query in ((SSE | {"Last-Event-ID": last}, ""), (SSE, f"?after={last}"), (SSE, "?after=999999")):
        answer = await tenant.client.get(f"/v1/runs/{run['id']}/events{query}", headers=headers)
        assert (answer.status_code, answer.content) == (204, b"")
    bad = await tenant.client.get(f"/v1/runs/{run['id']}/events", headers=SSE | {"Last-Event-ID": "x"})
    assert bad.status_code == 422


async def test_types_and_until(tenant: Tenant, url: str) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    await tenant.say(attempt, "a", "b")
    reading = asyncio.create_task(collect(url, tenant, run["id"], "?types=output"))
    ended = asyncio.create_task(collect(url, tenant, run["id"], "?until=ended"))
    await tenant.say(attempt, "c", first=2)
    await tenant.seal(attempt, [])
    assert (await asyncio.wait_for(ended, 10))[-1]["event"] == "end"
    assert not reading.done()
    await tenant.finish(run["id"])
    found = await asyncio.wait_for(reading, 10)
    assert [json.loads(f["data"])["payload"]["text"] for f in found[1:-1]] == ["a", "b", "c"]
    assert found[-1]["event"] == "end"


@pytest.mark.fault(120)
async def test_streams_cut_at_random_bytes_lose_and_double_nothing(tenant: Tenant, url: str) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    await tenant.say(attempt, *[f"{i} " + "é" * chance.randrange(60) for i in range(400)])
    await tenant.finish(run["id"])
    last = (await tenant.get(f"/v1/runs/{run['id']}"))["progress"]["last_seq"]
    seen: list[int] = []
    cuts = 0
    async with httpx.AsyncClient(timeout=20) as client:
        while not seen or seen[-1] < last:
            resume = {"Last-Event-ID": str(seen[-1])} if seen else {}
            seen += await _read_some(client, f"{url}/v1/runs/{run['id']}/events", tenant, resume, chance)
            cuts += 1
    assert seen == list(range(1, last + 1))
    assert cuts >= 20


async def _read_some(
    client: httpx.AsyncClient, path: str, tenant: Tenant, resume: dict[str, str], chance: random.Random
) -> list[int]:
    """Read up to a random byte, cut, and return the numbers of the frames that were complete."""
    budget = chance.randrange(1, 6000)
    taken = b""
    async with client.stream("GET", path, headers=SSE | tenant.bearer | resume) as response:
        async for piece in response.aiter_raw():
            taken += piece
            if len(taken) >= budget:
                break
    complete = taken[:budget].decode(errors="ignore").split("\n\n")[:-1]
    return [int(f.split("\n")[0].removeprefix("id: ")) for f in complete if f.startswith("id: ")]


@pytest.mark.fault(65)
async def test_a_revoked_token_ends_its_stream(tenant: Tenant, url: str) -> None:
    run = await tenant.run()
    made = await tenant.post("/v1/tokens", {"scopes": ["runs:read"]})
    headers = {"Authorization": f"Bearer {made['secret']}"}
    async with opened(f"{url}/v1/runs/{run['id']}/events", headers) as response:
        lines = response.aiter_lines()
        await anext(lines)
        started = time.monotonic()
        await tenant.client.delete(f"/v1/tokens/{made['id']}")
        rest = [line async for line in lines]
    assert time.monotonic() - started < 5
    assert "event: end" not in rest


async def test_streams_are_counted_and_bounded(tenant: Tenant, url: str) -> None:
    run = await tenant.run()
    tenant.state.open_streams = tenant.state.config.max_streams
    answer = await tenant.client.get(f"/v1/runs/{run['id']}/events", headers=SSE)
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:workstead:problem:too_many_streams")
    tenant.state.open_streams = 0
    async with opened(f"{url}/v1/runs/{run['id']}/events", tenant.bearer) as response:
        await anext(response.aiter_lines())
        assert tenant.state.open_streams == 1
    await _streams(tenant, 0)


async def test_an_event_is_at_the_client_at_once(tenant: Tenant, url: str) -> None:
    """Median time from before the append's transaction to the frame; the goal of `make bench` is 10 ms."""
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    waits: list[float] = []
    async with opened(f"{url}/v1/runs/{run['id']}/events", tenant.bearer) as response:
        found = frames(response)
        while '"running"' not in (await anext(found)).get("data", ""):
            pass
        for i in range(60):
            started = time.perf_counter()
            await tenant.say(attempt, f"{i}", first=i)
            while f'"text":"{i}"' not in (await anext(found)).get("data", ""):
                pass
            waits.append(time.perf_counter() - started)
    print(f"append to client: p50 {statistics.median(waits) * 1000:.1f} ms, max {max(waits) * 1000:.1f} ms")
    assert statistics.median(waits) < 0.1


@pytest.mark.fault(92)
async def test_odd_text_stays_one_frame(tenant: Tenant, url: str) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    odd = "a\n\ndata: {}\nid: 999\r\revent: end\u2028\u2029\x1b]52;c;x\x07"
    async with tenant.state.db.transaction() as tx:
        one = NewEvent("agent.message", {"text": odd}, "x", 0, attempt.created_at)
        await events.append(tx, run["id"], 1, attempt.fence, [one])
    await tenant.finish(run["id"])
    found = await collect(url, tenant, run["id"])
    message = next(json.loads(f["data"]) for f in found if "agent.message" in f.get("data", ""))
    assert message["payload"]["text"] == odd
    assert sum(f.get("event") == "end" for f in found) == 1


async def test_silence_has_a_heartbeat(tenant: Tenant, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "REREAD_S", 0.05)
    monkeypatch.setattr(event_stream, "HEARTBEAT_S", 0.2)
    run = await tenant.run()
    async with opened(f"{url}/v1/runs/{run['id']}/events", tenant.bearer) as response:
        beats = 0
        async for line in response.aiter_lines():
            beats += line.startswith(":")
            if beats == 2:
                break
    assert beats == 2


async def test_a_client_that_does_not_read_is_cut(tenant: Tenant, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "SEND_S", 0.5)
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    port = int(url.rpartition(":")[2])
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", port))
        head = f"GET /v1/runs/{run['id']}/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
        await loop.sock_sendall(client, f"{head}Authorization: Bearer {tenant.secret}\r\n\r\n".encode())
        await _streams(tenant, 1)
        for first in range(0, 800, 100):
            await tenant.say(attempt, *["x" * 10_000] * 100, first=first)
        await _streams(tenant, 0)


async def _streams(tenant: Tenant, wanted: int) -> None:
    """Wait until so many streams are open."""
    for _ in range(500):
        if tenant.state.open_streams == wanted:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{tenant.state.open_streams} streams are open")


@pytest.mark.fault(116)
async def test_a_database_that_goes_away_cuts_the_stream_and_loses_nothing(
    tenant: Tenant, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    read, fails = events.read, [False]

    async def failing(*arguments: Any) -> Any:
        if fails[0]:
            raise Unavailable("database_unavailable")
        return await read(*arguments)

    monkeypatch.setattr(event_stream.events, "read", failing)
    seen: list[int] = []

    async def watch() -> None:
        async with opened(f"{url}/v1/runs/{run['id']}/events", tenant.bearer) as response:
            async for frame in frames(response):
                seen.extend([int(frame["id"])] if "id" in frame else [])
                if '"running"' in frame.get("data", ""):
                    fails[0] = True
                    await tenant.say(attempt, "while it is away")

    with pytest.raises(httpx.RemoteProtocolError):
        await watch()
    fails[0] = False
    await tenant.finish(run["id"])
    rest = await collect(url, tenant, run["id"], f"?after={seen[-1]}")
    seen += [int(f["id"]) for f in rest if "id" in f]
    assert seen == list(range(1, json.loads(rest[-1]["data"])["last_seq"] + 1))
