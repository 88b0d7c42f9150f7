"""A replayed run's calls to services are answered from the recording: the service may be gone, and nothing is paid."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
import pytest_asyncio

from service.domain.grants import Grant
from service.domain.policies import RunBudget
from service.gateway.body_keeper import BodyKeeper, BodyLimits
from service.gateway.cassettes.projection import canonical
from service.store import events, service_calls
from service.store.request_bodies import read_body
from service.store.rows_requests import ServiceCallRow
from tests.api.helpers import served
from tests.integration.gateway.bench import TOKEN, GateBench
from tests.integration.gateway.test_services import SECRET, Rig, Somewhere

pytestmark = pytest.mark.asyncio(loop_scope="module")
OTHER = "wsr_OTHEROTH_9876543210-of-a-replay"
UNLIMITED: dict[str, Any] = {"max_calls_per_run": None}


class Replays(Rig):
    """A rig whose service can be stopped for good."""

    def __init__(self, bench: GateBench, somewhere: Somewhere, url: str, running: AsyncExitStack) -> None:
        super().__init__(bench, somewhere, url)
        self._running = running

    async def replay(self, recorded: Grant | None = None, **changes: Any) -> httpx.AsyncClient:
        """Stop the service; return a client of a run that replays the last one."""
        await self.bench.ledger.flush()
        await self._running.aclose()
        self.bench.begin("unreachable")
        before = recorded or self.grant
        made = await self.bench.grant(OTHER, replay_of=before.run_id, services=before.services, **changes)
        return await self.open(made, OTHER)

    async def rows(self) -> list[ServiceCallRow]:
        await self.bench.ledger.flush()
        async with self.bench.db.reading() as tx:
            return await service_calls.list_for_run(tx, self.run_id, 0, 100)

    async def story(self) -> list[dict[str, Any]]:
        await self.bench.ledger.flush()
        async with self.bench.db.reading() as tx:
            return canonical(await events.read(tx, self.run_id, 0, 1000))

    async def note(self) -> dict[str, Any]:
        await self.bench.ledger.flush()
        async with self.bench.db.reading() as tx:
            (note,) = [e.payload for e in await events.read(tx, self.run_id, 0, 100, ["note"])]
        return note


@pytest_asyncio.fixture(loop_scope="module")
async def rig(bench: GateBench) -> AsyncIterator[Replays]:
    somewhere, running = Somewhere(), AsyncExitStack()
    url = await running.enter_async_context(served(somewhere))  # pyright: ignore[reportArgumentType] - any ASGI application
    made = Replays(bench, somewhere, f"{url}/v2", running)
    yield made
    for client in made.clients:
        await client.aclose()
    await made.endpoints.shut()
    await bench.ledger.flush()
    await running.aclose()


def _code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def test_a_call_is_answered_as_it_was_and_costs_nothing(rig: Replays) -> None:
    client = await rig.client(**UNLIMITED)
    asks: list[tuple[str, str, Any]] = [
        ("GET", "/services/search/web/cats?q=a%20b&at=2026-11-30", None),
        ("POST", "/services/search/mcp", {"id": 1, "took": "0.3 seconds"}),
        ("POST", "/services/search/mcp", {"id": 2, "key": TOKEN}),
    ]
    first = [await client.request(method, path, json=body) for method, path, body in asks]
    assert [one.status_code for one in first] == [200] * 3
    story, left = await rig.story(), len(rig.somewhere.asked)
    client = await rig.replay()
    # In another order, on another day, with another token.
    asks = [
        (method, path.replace("2026-11-30", "2026-12-01"), json.loads(json.dumps(body).replace(TOKEN, OTHER)))
        for method, path, body in asks
    ]
    for n in (1, 0, 2):
        method, path, body = asks[n]
        again = await client.request(method, path, json=body)
        assert (again.status_code, again.content) == (first[n].status_code, first[n].content)
        assert again.headers["content-type"] == first[n].headers["content-type"]
    assert len(rig.somewhere.asked) == left
    rows = await rig.rows()
    assert [(row.replay_of_n, row.cost_usd, row.price_date) for row in rows] == [
        (2, 0, None),
        (1, 0, None),
        (3, 0, None),
    ]
    assert [call["cost_usd"] for call in await rig.calls()] == ["0", "0", "0"]
    usage = await rig.usage()
    assert (usage.service_calls, usage.services_cost_usd) == (3, "0")
    assert len(story) == len(asks)
    assert _unnumbered(await rig.story()) == _unnumbered(story)


def _unnumbered(story: list[dict[str, Any]]) -> list[str]:
    """Calls that were made in another order have other numbers."""
    return sorted(json.dumps({key: value for key, value in one.items() if key != "n"}) for one in story)


async def test_a_replay_has_the_story_of_its_recording_and_is_a_recording(rig: Replays) -> None:
    client = await rig.client(**UNLIMITED)
    said = [(await client.get("/services/search/web/1")).text, (await client.get("/services/search/web/2")).text]
    story = await rig.story()
    for _ in range(2):
        client = await rig.replay()
        assert [(await client.get(f"/services/search/web/{n}")).text for n in (1, 2)] == said
        assert await rig.story() == story


async def test_what_clients_draw_by_lot_does_not_count_but_which_part_they_want_does(rig: Replays) -> None:
    client = await rig.client(**UNLIMITED)
    files = {"file": ("a.wav", b"RIFF\x00\xff" * 10), "model": (None, "hearing-1")}
    assert (await client.post("/services/search/mcp", files=files)).status_code == 200
    for part in ("bytes=0-9", "bytes=10-19"):
        await client.get("/services/search/web/1", headers={"range": part})
    client = await rig.replay()
    for part in ("bytes=10-19", "bytes=0-9"):
        assert (await client.get("/services/search/web/1", headers={"range": part})).status_code == 200
    assert [row.replay_of_n for row in await rig.rows()] == [3, 2]
    other = {**files, "model": (None, "hearing-2")}
    assert _code(await client.post("/services/search/mcp", files=other)) == (400, "cassette_mismatch")
    assert (await client.post("/services/search/mcp", files=files)).status_code == 200


async def test_each_answer_is_given_once_and_another_call_says_where_it_differs(rig: Replays) -> None:
    client = await rig.client(**UNLIMITED)
    for word in ("cats", "cats", "dogs"):
        await client.get("/services/search/web/1", params={"q": word})
    client = await rig.replay()
    assert [(await client.get("/services/search/web/1?q=cats")).status_code for _ in range(2)] == [200, 200]
    other = await client.get("/services/search/web/1?q=cows")
    assert _code(other) == (400, "cassette_mismatch")
    note = await rig.note()
    assert (note["kind"], note["expected_n"], note["pointer"]) == ("cassette_mismatch", 3, "/query/q/0")
    assert (note["recorded"], note["asked"]) == ('"dogs"', '"cows"')
    row = (await rig.rows())[-1]
    assert (row.status, row.error, row.replay_of_n, row.cost_usd) == (400, "cassette_mismatch", None, 0)
    # What was not used up by that can still be asked, and nothing twice.
    assert (await client.get("/services/search/web/1?q=dogs")).status_code == 200
    over = await client.get("/services/search/web/1?q=dogs")
    assert (*_code(over), "no further" in over.text) == (400, "cassette_mismatch", True)
    assert len(rig.somewhere.asked) == 3
    assert not rig.endpoints.state((rig.run_id, rig.grant.attempt)).provider_failed


async def test_what_was_refused_or_failed_is_refused_and_fails_again(rig: Replays) -> None:
    rig.somewhere.status, rig.somewhere.location = 302, f"{rig.url}/web/2"
    client = await rig.client()  # three calls
    paths = ["/services/search/web/1", "/services/search/admin", "/services/search/web/1", "/services/search/web/2"]
    paths += ["/services/search/web/3", "/services/other/web/1"]
    before = [await client.get(path) for path in paths]
    assert [one.status_code for one in before] == [502, 403, 502, 502, 429, 404]
    client = await rig.replay()
    after = [await client.get(path) for path in paths]
    assert [(one.status_code, one.content) for one in after] == [(one.status_code, one.content) for one in before]
    assert [(row.status, row.error) for row in await rig.rows()] == [(502, "upstream_redirect")] * 3


async def test_an_answer_that_broke_off_breaks_off(rig: Replays) -> None:
    rig.somewhere.repeat = 10_000
    client = await rig.client(max_answer_bytes=1000)
    with pytest.raises(httpx.RemoteProtocolError):
        await client.get("/services/search/web/1")
    client = await rig.replay()
    with pytest.raises(httpx.RemoteProtocolError):
        await client.get("/services/search/web/1")
    assert (await rig.rows())[0].error == "answer_too_large"


async def _first_words(client: httpx.AsyncClient) -> bytes:
    """Ask, and leave in the middle of the answer."""
    async with client.stream("GET", "/services/search/web/1") as answer:
        return await anext(answer.aiter_bytes(5))


async def test_a_client_that_leaves_an_endless_answer_can_leave_it_again(rig: Replays) -> None:
    rig.somewhere.endless = True
    client = await rig.client(**UNLIMITED)
    assert await _first_words(client) == b"more "
    await _left(rig)
    client = await rig.replay()
    assert await _first_words(client) == b"more "
    await _left(rig)
    assert (await rig.rows())[0].replay_of_n == 1


async def _left(rig: Replays) -> None:
    deadline = time.monotonic() + 20
    while [row.error for row in await rig.rows()] != ["client_gone"]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def test_an_answer_that_cannot_be_looked_through_is_not_kept(rig: Replays) -> None:
    rig.somewhere.encoding = "br"
    client = await rig.client(**UNLIMITED)
    async with client.stream("GET", "/services/search/web/1") as answer:
        assert b"found 42" in b"".join([piece async for piece in answer.aiter_raw()])
    (row,) = await rig.rows()
    assert row.response_blob is not None
    assert read_body(rig.bench.blobs, row.response_blob).data == b""
    client = await rig.replay()
    assert _code(await client.get("/services/search/web/1")) == (400, "cassette_incomplete")


async def test_the_budget_ends_where_it_ended(rig: Replays) -> None:
    budget = RunBudget(max_usd="0.011")
    client = await rig.client(**UNLIMITED, budget=budget)
    before = [await client.get(f"/services/search/web/{n}") for n in range(3)]
    assert [one.status_code for one in before] == [200, 200, 400]
    client = await rig.replay(budget=budget)
    after = [await client.get(f"/services/search/web/{n}") for n in range(3)]
    assert [(one.status_code, one.content) for one in after] == [(one.status_code, one.content) for one in before]
    assert rig.endpoints.state((rig.run_id, rig.grant.attempt)).budget_exhausted
    assert (await rig.usage()).services_cost_usd == "0"


@pytest.mark.parametrize("side", ["request", "answer"])
async def test_what_was_too_large_to_keep_is_refused_and_not_asked_again(
    rig: Replays, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = BodyKeeper(rig.bench.blobs, BodyLimits(body_bytes=2000))
    monkeypatch.setattr(rig.services, "_bodies", small)
    client = await rig.client(**UNLIMITED)
    rig.somewhere.repeat = 1000 if side == "answer" else 1
    body = {"text": "x" * (5000 if side == "request" else 5)}
    first = await client.post("/services/search/mcp", json=body)
    assert (first.status_code, len(first.content) > 2000) == (200, side == "answer")
    client = await rig.replay()
    again = await client.post("/services/search/mcp", json=body)
    assert (*_code(again), "not kept whole" in again.text) == (400, "cassette_incomplete", True)
    assert len(rig.somewhere.asked) == 1
    assert (await rig.note())["kind"] == "cassette_incomplete"
    assert (await rig.rows())[0].error == "cassette_incomplete"
    small.close()


async def test_without_a_recording_there_is_no_live_call(rig: Replays) -> None:
    client = await rig.client(**UNLIMITED)
    rig.grant = rig.grant.model_copy(update={"run_id": "run_nowhere"})
    client = await rig.replay()
    answer = await client.get("/services/search/web/1")
    assert (*_code(answer), "no recording" in answer.text) == (400, "cassette_mismatch", True)
    assert rig.somewhere.asked == []


async def test_keys_and_tokens_are_in_nothing_that_is_kept(rig: Replays) -> None:
    coded = base64.b64encode(SECRET.encode()).decode()
    rig.somewhere.echo = f" and {TOKEN}"
    client = await rig.client(**UNLIMITED)
    answer = await client.post(f"/services/search/mcp?t={TOKEN}", json={"key": SECRET, "coded": coded, "token": TOKEN})
    assert answer.status_code == 200
    (row,) = await rig.rows()
    assert row.request_blob is not None
    assert row.response_blob is not None
    kept = [read_body(rig.bench.blobs, sha).data.decode() for sha in (row.request_blob, row.response_blob)]
    assert "found 42" in kept[1]
    for secret in (SECRET, coded, TOKEN):
        assert secret not in "".join(kept) + json.dumps(row.cassette)
    files = [file for file in rig.bench.blobs.root.rglob("*") if file.is_file()]
    assert files
    for data in await asyncio.to_thread(lambda: [file.read_bytes() for file in files]):
        assert SECRET.encode() not in data
