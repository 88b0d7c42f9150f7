"""Requests through the gateway: what arrives at the provider, what the client gets, what the ledger says."""

import json
from typing import Any

import httpx
import pytest

from service.domain.models import TokenUsage
from service.domain.policies import ProviderTools
from service.gateway.limits import GatewayLimits
from service.models.scripted.scenario import Scenario
from service.models.scripted.server import Scripted
from service.store.request_bodies import read_body
from tests.integration.gateway.bench import TOKEN, GateBench, messages, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
CHAT = {"model": "openai-1", "messages": [{"role": "user", "content": "hi"}]}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
ASKS: list[tuple[str, str, dict[str, Any]]] = [
    ("messages", "/v1/messages?beta=true", messages()),
    ("messages streamed", "/anthropic/v1/messages", messages(stream=True)),
    ("chat", "/v1/chat/completions", CHAT),
    ("chat streamed", "/openai/v1/chat/completions", {**CHAT, "stream": True}),
    ("responses", "/v1/responses", {"model": "openai-1", "input": "hi"}),
    ("responses streamed", "/v1/responses", {"model": "openai-1", "input": "hi", "stream": True}),
    ("embeddings", "/v1/embeddings", {"model": "openai-1", "input": "hi"}),
    ("gemini", "/v1beta/models/gemini-1:generateContent", GEMINI),
    ("gemini streamed", "/gemini/v1beta/models/gemini-1:streamGenerateContent?alt=sse", GEMINI),
]


@pytest.mark.parametrize(("name", "path", "body"), ASKS, ids=[name for name, _, _ in ASKS])
async def test_usage_is_the_providers_token_for_token(
    bench: GateBench, name: str, path: str, body: dict[str, Any]
) -> None:
    bench.provider.add(
        Scenario(
            name="text", usage=TokenUsage(input_tokens=11, cached_input_tokens=7, output_tokens=5, reasoning_tokens=2)
        )
    )
    grant = await bench.grant()
    client = await bench.client(grant)
    answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    (asked,) = bench.asked()
    (row,) = await bench.ledger_of(grant)
    sent = asked.usage
    assert sent is not None
    assert (row.n, row.state, row.status, row.error, row.usage_known) == (1, "finished", 200, None, True)
    seen = TokenUsage(**{field: getattr(row, field) for field in TokenUsage.model_fields})
    assert seen == sent
    assert row.cost_usd is not None
    assert row.streaming == ("streamed" in name)
    assert row.route == f"POST {path.partition('?')[0]}"
    started, finished = await bench.events_of(grant)
    assert (started["state"], finished["state"]) == ("started", "finished")
    assert finished["input_tokens"] == sent.input_tokens
    assert started["request_id"] == finished["request_id"] == row.id


async def test_counters_of_the_run_follow_the_ledger(bench: GateBench) -> None:
    grant = await bench.grant()
    client = await bench.client(grant)
    for _ in range(3):
        await client.post("/v1/messages", json=messages())
    rows = await bench.ledger_of(grant)
    run = await bench.run_row(grant)
    assert (run.requests, run.output_tokens) == (3, sum(row.output_tokens for row in rows))
    assert run.cost_usd == run.cost_usd_all_attempts == sum(row.cost_usd or 0 for row in rows)
    assert (run.cost_basis, str(run.price_date), run.flags) == ("measured", "2026-11-01", ())


@pytest.mark.fault(43)
async def test_nothing_of_the_sandbox_reaches_the_provider_but_what_it_understands(bench: GateBench) -> None:
    sent = {
        "x-api-key": TOKEN, "authorization": f"Bearer {TOKEN}", "cookie": "session=1", "x-forwarded-for": "1.2.3.4",
        "forwarded": "for=1.2.3.4", "x-forwarded-host": "evil.test", "host": "evil.test", "proxy-authorization": "x",
        "openai-organization": "org-evil", "x-goog-user-project": "evil", "anthropic-beta": "a-2025,b-2025",
        "anthropic-version": "2023-06-01", "x-stainless-lang": "js", "x-custom": "1", "connection": "keep-alive, x-custom",
    }  # fmt: skip
    client = await bench.client(await bench.grant(), headers=sent)
    assert (await client.post("/v1/messages", json=messages())).status_code == 200
    (asked,) = bench.asked()
    passed = {name: value for name, value in asked.headers.items() if name not in ("user-agent", "accept")}
    assert passed == {
        "x-api-key": "sk-scripted-text", "anthropic-beta": "a-2025,b-2025", "anthropic-version": "2023-06-01",
        "x-stainless-lang": "js", "content-type": "application/json", "accept-encoding": "identity",
        "host": bench.provider.url.removeprefix("http://"), "content-length": passed["content-length"],
    }  # fmt: skip


@pytest.mark.fault(44)
async def test_a_redirect_is_an_error_and_is_not_followed(bench: GateBench) -> None:
    bench.key.value = "sk-scripted-redirect"
    grant = await bench.grant()
    client = await bench.client(grant)
    answer = await client.post("/v1/messages", json=messages())
    assert answer.status_code == 502
    assert "location" not in answer.headers
    assert len(bench.asked()) == 1
    (row,) = await bench.ledger_of(grant)
    assert (row.error, row.provider_error, row.tries) == ("upstream_redirect", True, 1)


@pytest.mark.parametrize(
    ("scenario", "tries"), [("e429-twice", 3), ("e500-once", 2), ("e529-once", 2), ("reset-once", 2)]
)
async def test_what_passes_by_itself_is_waited_for(bench: GateBench, scenario: str, tries: int) -> None:
    bench.key.value = f"sk-scripted-{scenario}"
    grant = await bench.grant()
    client = await bench.client(grant)
    assert (await client.post("/v1/messages", json=messages(stream=True))).status_code == 200
    (row,) = await bench.ledger_of(grant)
    assert (row.tries, row.error, row.usage_known) == (tries, None, True)
    assert row.wait_s > 0
    assert (await bench.run_row(grant)).provider_wait_s == row.wait_s
    state = bench.endpoints.state((grant.run_id, grant.attempt))
    assert state.provider_wait_s == row.wait_s
    assert not state.provider_failed


@pytest.mark.parametrize("scenario", ["e500", "reset"])
async def test_a_provider_that_stays_away_ends_the_attempt(bench: GateBench, scenario: str) -> None:
    bench.key.value = f"sk-scripted-{scenario}"
    grant = await bench.grant(budget={"provider_patience_s": 0.3})
    client = await bench.client(grant)
    answer = await client.post("/v1/messages", json=messages())
    assert answer.status_code in (502, 503)
    assert answer.json()["error"]["message"].startswith("the provider")
    ended = await bench.endpoints.ended((grant.run_id, grant.attempt))
    assert ended.provider_failed
    (row,) = await bench.ledger_of(grant)
    assert row.provider_error
    assert row.tries > 1
    assert row.usage_known == (scenario != "reset")


@pytest.mark.parametrize(("scenario", "status"), [("e401", 400), ("e403", 400), ("e404", 404), ("e400", 400)])
async def test_final_errors_are_final(bench: GateBench, scenario: str, status: int) -> None:
    bench.key.value = f"sk-scripted-{scenario}"
    grant = await bench.grant()
    client = await bench.client(grant)
    answer = await client.post("/v1/messages", json=messages())
    assert answer.status_code == status
    rejected = scenario in ("e401", "e403")
    assert ("provider_rejected_credential" in answer.text) == rejected
    (row,) = await bench.ledger_of(grant)
    assert (row.error, row.provider_error, row.tries) == (f"provider_{scenario[1:]}", rejected, 1)
    assert (row.usage_known, row.input_tokens, row.cost_usd) == (True, 0, None)


async def test_a_cut_stream_is_cut_for_the_client_and_its_usage_unknown(bench: GateBench) -> None:
    bench.key.value = "sk-scripted-cut"
    grant = await bench.grant()
    client = await bench.client(grant)
    with pytest.raises(httpx.RemoteProtocolError):
        await client.post("/v1/messages", json=messages(stream=True))
    (row,) = await bench.ledger_of(grant)
    assert (row.status, row.error, row.provider_error, row.usage_known) == (200, "upstream_cut", True, False)
    assert (await bench.run_row(grant)).flags == ("usage_unknown",)
    assert row.reserved_tokens > 100


async def test_hundred_megabytes_pass(bench: GateBench) -> None:
    bench.key.value = "sk-scripted-huge-body"
    grant = await bench.grant(keep_bodies=False)
    client = await bench.client(grant)
    size = 0
    async with client.stream("POST", "/v1/messages", json=messages()) as answer:
        async for piece in answer.aiter_bytes():
            size += len(piece)
    assert size >= 100_000_000
    assert len(await bench.ledger_of(grant)) == 1


@pytest.mark.fault(36)
@pytest.mark.parametrize("scenario", ["echo-key", "echo-key-error"])
async def test_an_echoed_key_goes_nowhere(bench: GateBench, scenario: str) -> None:
    secret = bench.key.value = f"sk-scripted-{scenario}"
    grant = await bench.grant()
    client = await bench.client(grant)
    answer = await client.post("/v1/messages", json=messages(stream=True, metadata={"user_id": TOKEN}))
    shown = answer.text + str(answer.headers)
    assert secret not in shown
    (row,) = await bench.ledger_of(grant)
    told = json.dumps(await bench.events_of(grant)) + str(row)
    assert secret not in told
    assert row.request_blob is not None
    assert row.response_blob is not None
    kept = read_body(bench.blobs, row.request_blob).data + read_body(bench.blobs, row.response_blob).data
    assert secret.encode() not in kept
    assert TOKEN.encode() not in kept, "the run's own token neither"


async def test_bodies_are_kept_as_they_were(bench: GateBench) -> None:
    grant = await bench.grant()
    client = await bench.client(grant)
    answer = await client.post("/v1/messages", json=messages())
    (row,) = await bench.ledger_of(grant)
    assert row.request_blob is not None
    assert row.response_blob is not None
    assert json.loads(read_body(bench.blobs, row.request_blob).data) == messages()
    assert read_body(bench.blobs, row.response_blob).data == answer.content


@pytest.mark.parametrize("policy", list(ProviderTools))
async def test_provider_side_tools_are_egress(bench: GateBench, policy: ProviderTools) -> None:
    grant = await bench.grant(provider_tools=policy)
    client = await bench.client(grant)
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    answer = await client.post("/v1/messages", json=messages(tools=tools))
    asked = [one.json for one in bench.asked()]
    if policy is ProviderTools.REFUSE:
        assert answer.status_code == 400
        assert "provider_tool_refused" in answer.text
        assert not asked
        return
    assert answer.status_code == 200
    assert bool(asked[0].get("tools")) == (policy is ProviderTools.ALLOW)
    denied = [one for one in await _events(bench, grant) if one["type"] == "provider.tools"]
    assert [one["denied"] for one in denied] == ([["web_search_20250305"]] if policy is ProviderTools.DENY else [])


async def _events(bench: GateBench, grant: Any) -> list[dict[str, Any]]:
    await bench.ledger.flush()
    return await bench.events_of(grant)


async def test_a_stalled_provider_is_given_up(database_url: str, provider: Scripted, tmp_path: Any) -> None:
    async with GateBench.open(database_url, provider, tmp_path, GatewayLimits(stalled_s=0.5)) as bench:
        grant = await bench.grant()
        client = await bench.client(grant)
        bench.begin("stalled")
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post("/v1/messages", json=messages(stream=True))
        (row,) = await bench.ledger_of(grant)
        assert (row.error, row.provider_error, row.usage_known) == ("upstream_stalled", True, False)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", messages()),
        ("/v1/chat/completions", {"model": "openai-1", "messages": [{"role": "user", "content": "hi"}]}),
        ("/v1/responses", {"model": "openai-1", "input": "hi"}),
    ],
    ids=["messages", "chat", "responses"],
)
async def test_an_answer_is_whole_when_its_own_end_has_come(
    bench: GateBench, path: str, body: dict[str, Any], stream: bool
) -> None:
    """SDKs hang up there; HTTP's end may be on its way, or never come."""
    bench.key.value = "sk-scripted-lingers"
    grant = await bench.grant()
    client = await bench.client(grant)
    asked = client.stream("POST", path, json={**body, "stream": stream})
    async with asked as answer:
        got = b""
        async for piece in answer.aiter_raw():
            got += piece
            if any(end in got for end in (b"message_stop", b"[DONE]", b"response.completed")) or not stream:
                break
    await until(lambda: bench.endpoints.state((grant.run_id, grant.attempt)).open_requests == 0)
    (row,) = await bench.ledger_of(grant)
    (sent,) = bench.asked()
    assert sent.usage is not None
    assert (row.status, row.error, row.usage_known) == (200, None, True)
    assert row.output_tokens == sent.usage.output_tokens


async def test_an_end_of_http_that_never_comes_costs_nobody_anything(
    database_url: str, provider: Scripted, tmp_path: Any
) -> None:
    async with GateBench.open(database_url, provider, tmp_path, GatewayLimits(stalled_s=0.5)) as bench:
        grant = await bench.grant()
        client = await bench.client(grant)
        bench.begin("lingers")
        answer = await client.post("/v1/messages", json=messages(stream=True))
        assert b"message_stop" in answer.content
        (row,) = await bench.ledger_of(grant)
        assert (row.error, row.provider_error, row.usage_known) == (None, False, True)


async def test_other_dialects_models_are_not_this_ones(bench: GateBench) -> None:
    client = await bench.client(await bench.grant())
    answer = await client.post("/v1/messages", json=messages(model="claude-other"))
    assert answer.status_code == 400
    assert "model_not_allowed" in answer.text
    by_name = await client.post("/v1/messages", json=messages(model="test/anthropic"))
    assert by_name.status_code == 200
    assert bench.asked()[0].json["model"] == "anthropic-1"
    listed = (await client.get("/v1/models")).json()
    assert [one["id"] for one in listed["data"]] == ["openai-1"]


async def test_a_projects_own_entry_reaches_no_private_address(bench: GateBench) -> None:
    model = bench.model()
    spec = model.spec.model_copy(update={"base_url": bench.provider.url.replace("127.0.0.1", "localhost")})
    for address in (model.spec, spec):
        grant = await bench.grant(models=[model.model_copy(update={"private": False, "spec": address})])
        client = await bench.client(grant)
        answer = await client.post("/v1/messages", json=messages())
        assert answer.status_code == 502
        (row,) = await bench.ledger_of(grant)
        assert (row.error, row.tries) == ("upstream_not_public", 1)
    assert not bench.asked()
