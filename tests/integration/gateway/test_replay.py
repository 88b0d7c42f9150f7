"""A recorded run answers a later one: the same bytes, figures and events, and no provider is asked."""

import json
from typing import Any

import httpx
import pytest

from service.domain.events import Event
from service.domain.grants import Grant
from service.gateway.cassettes.projection import canonical
from service.gateway.cassettes.replay import StoredTapes
from service.gateway.cassettes.tape import CassetteMismatch
from service.store import events
from tests.integration.gateway.bench import TOKEN, GateBench, messages
from tests.integration.gateway.test_forwarding import ASKS

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _events(bench: GateBench, grant: Grant) -> list[Event]:
    await bench.ledger.flush()
    async with bench.db.reading() as tx:
        return await events.read(tx, grant.run_id, 0, 1000)


async def _replay(bench: GateBench, recorded: Grant, **changes: Any) -> tuple[Grant, httpx.AsyncClient]:
    await bench.ledger.flush()
    grant = await bench.grant(replay_of=recorded.run_id, **changes)
    client = await bench.client(grant)
    bench.begin("unreachable")
    return grant, client


@pytest.mark.parametrize(("name", "path", "body"), ASKS, ids=[name for name, _, _ in ASKS])
async def test_a_replay_is_the_run_again_with_no_provider(
    bench: GateBench, name: str, path: str, body: dict[str, Any]
) -> None:
    recorded = await bench.grant()
    client = await bench.client(recorded)
    first = await client.post(path, json=body)
    again, client = await _replay(bench, recorded)
    second = await client.post(path, json=body)
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert second.headers["content-type"] == first.headers["content-type"]
    assert not bench.asked(), name
    (one,), (two,) = await bench.ledger_of(recorded), await bench.ledger_of(again)
    for field in ("usage_known", "input_tokens", "output_tokens", "cached_input_tokens", "cost_usd", "reported_model"):
        assert getattr(one, field) == getattr(two, field), field
    story = canonical(await _events(bench, recorded))
    assert [one["type"] for one in story] == ["model.request", "model.request"]
    assert canonical(await _events(bench, again)) == story


def _turn(text: str, n: int = 1) -> dict[str, Any]:
    return messages(
        system=f"Today's date: 2026-11-{n:02}. Session 6f1c0e0a-1111-4222-8333-1234567890{n:02}.",
        metadata={"user_id": f"session-{n}"},
        messages=[{"role": "user", "content": text}, {"role": "user", "content": f"took 0.{n} seconds, key {TOKEN}"}],
    )


async def test_requests_are_found_by_what_they_say_each_once(bench: GateBench) -> None:
    recorded = await bench.grant()
    client = await bench.client(recorded)
    answers = [(await client.post("/v1/messages", json=_turn(text))).content for text in ("a", "b", "a")]
    again, client = await _replay(bench, recorded)
    # In another order, on another day.
    for text, answer in (("b", answers[1]), ("a", answers[0]), ("a", answers[2])):
        assert (await client.post("/anthropic/v1/messages", json=_turn(text, 9))).content == answer
    over = await client.post("/v1/messages", json=_turn("a"))
    assert over.status_code == 400
    assert "no further request" in over.json()["error"]["message"]
    assert len(await bench.ledger_of(again)) == 4


async def test_a_replay_that_goes_another_way_says_where(bench: GateBench) -> None:
    recorded = await bench.grant()
    client = await bench.client(recorded)
    await client.post("/v1/messages", json=_turn("the same but for one w0rd"))
    again, client = await _replay(bench, recorded)
    answer = await client.post("/v1/messages", json=_turn("the same but for one word"))
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "cassette_mismatch")
    assert "/messages/0/content" in error["message"]
    assert answer.headers["x-should-retry"] == "false"
    (row,) = await bench.ledger_of(again)
    assert (row.error, row.provider_error, row.status) == ("cassette_mismatch", False, 400)
    (note,) = [one.payload for one in await _events(bench, again) if one.type == "note"]
    assert (note["kind"], note["expected_n"], note["pointer"]) == ("cassette_mismatch", 1, "/messages/0/content")
    assert "w0rd" in note["recorded"]
    assert "word" in note["asked"]
    # What was not used up by that can still be asked.
    assert (await client.post("/v1/messages", json=_turn("the same but for one w0rd"))).status_code == 200
    assert not bench.asked()
    assert not bench.endpoints.state((again.run_id, again.attempt)).provider_failed


async def test_secrets_are_in_no_mismatch(bench: GateBench) -> None:
    recorded = await bench.grant()
    client = await bench.client(recorded)
    await client.post("/v1/messages", json=messages(messages=[{"role": "user", "content": f"x {TOKEN} 1"}]))
    again, client = await _replay(bench, recorded)
    answer = await client.post("/v1/messages", json=messages(messages=[{"role": "user", "content": f"x {TOKEN} 2"}]))
    told = answer.text + json.dumps([one.payload for one in await _events(bench, again)])
    assert "cassette_mismatch" in told
    assert TOKEN not in told


async def test_another_model_or_endpoint_is_another_request(bench: GateBench) -> None:
    recorded = await bench.grant()
    client = await bench.client(recorded)
    await client.post("/v1/messages", json=messages())
    _, client = await _replay(bench, recorded)
    other = await client.post("/v1/messages", json=messages(model="test/anthropic"))
    assert (other.status_code, "asked 'anthropic-1'" in other.text) == (400, True)
    counted = await client.post("/v1/messages/count_tokens", json=messages())
    assert (counted.status_code, "no further request" in counted.text) == (400, True)


@pytest.mark.parametrize(("scenario", "status"), [("e401", 400), ("e400", 400), ("cut", 200)])
async def test_failures_are_replayed_as_they_were(bench: GateBench, scenario: str, status: int) -> None:
    bench.key.value = f"sk-scripted-{scenario}"
    recorded = await bench.grant()
    before = await _try(await bench.client(recorded))
    assert before[0] == status
    again, client = await _replay(bench, recorded)
    assert await _try(client) == before
    (one,), (two,) = await bench.ledger_of(recorded), await bench.ledger_of(again)
    assert (one.error, one.status, one.usage_known) == (two.error, two.status, two.usage_known)
    assert not bench.asked()


async def _try(client: httpx.AsyncClient) -> tuple[int, bytes, bool]:
    data, broken = b"", False
    async with client.stream("POST", "/v1/messages", json=messages(stream=True)) as answer:
        try:
            async for piece in answer.aiter_bytes():
                data += piece
        except httpx.RemoteProtocolError:
            broken = True
    return answer.status_code, data, broken


async def test_without_a_recording_there_is_no_replay(bench: GateBench) -> None:
    unrecorded = await bench.grant(keep_bodies=False)
    client = await bench.client(unrecorded)
    await client.post("/v1/messages", json=messages())
    for replay_of, said in ((unrecorded.run_id, "was not kept"), ("run_nowhere", "no recording")):
        await bench.ledger.flush()
        client = await bench.client(await bench.grant(replay_of=replay_of))
        answer = await client.post("/v1/messages", json=messages())
        assert (answer.status_code, said in answer.text) == (400, True), answer.text
    with pytest.raises(CassetteMismatch, match="no recording"):
        await StoredTapes(bench.db, bench.blobs).load("prj_other", unrecorded.run_id)
