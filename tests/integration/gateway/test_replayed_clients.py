"""A replayed run's simulated client is answered from the recording as its agent is: no provider is asked."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.domain.grants import Grant
from service.gateway.control import bind
from service.gateway.front import Front, NoServices
from service.gateway.http_server import HttpServing
from service.gateway.sides import OwnSide
from service.store import events
from tests.integration.gateway.bench import GateBench, messages

pytestmark = pytest.mark.asyncio(loop_scope="module")
FACTS = "What only you know: the budget is 4711 dollars"


def _message(text: str, facts: str = FACTS) -> dict[str, Any]:
    return messages(system=facts, messages=[{"role": "user", "content": text}])


@asynccontextmanager
async def own_side(bench: GateBench, folder: Path) -> AsyncGenerator[httpx.AsyncClient]:
    async def find(project_id: str, names: list[str]) -> Any:
        return [bench.model()]

    front = Front(bench.forwarding, NoServices(), OwnSide(bench.endpoints, "service-token", find, 0.3).admit)
    listening = await HttpServing(16).start(front, bind(folder / "models.sock"))
    transport = httpx.AsyncHTTPTransport(uds=str(folder / "models.sock"))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=10) as client:
        yield client
    await listening.close()


def _for(grant: Grant) -> dict[str, str]:
    return {
        "x-api-key": "service-token", "x-workstead-project": grant.project_id, "x-workstead-purpose": "client",
        "x-workstead-model": "test/anthropic", "x-workstead-run": f"{grant.run_id}/{grant.attempt}",
    }  # fmt: skip


async def _recorded(bench: GateBench, own: httpx.AsyncClient, *texts: str) -> tuple[Grant, list[bytes]]:
    """Have an agent and its client asked; return what the client was answered."""
    grant = await bench.grant()
    agent = await bench.client(grant)
    assert (await agent.post("/v1/messages", json=messages())).status_code == 200
    answers = [await own.post("/v1/messages", json=_message(text), headers=_for(grant)) for text in texts]
    assert [one.status_code for one in answers] == [200] * len(texts)
    await bench.ledger.flush()
    return grant, [one.content for one in answers]


async def _replaying(bench: GateBench, recorded: Grant) -> Grant:
    grant = await bench.grant(replay_of=recorded.run_id)
    await bench.endpoints.open(grant, {})
    bench.begin("unreachable")
    return grant


async def test_a_simulated_client_says_again_what_it_said(bench: GateBench, tmp_path: Path) -> None:
    async with own_side(bench, tmp_path) as own:
        recorded, said = await _recorded(bench, own, "which format?", "until when?")
        again = await _replaying(bench, recorded)
        for text, answer in zip(("which format?", "until when?"), said, strict=True):
            replayed = await own.post("/v1/messages", json=_message(text), headers=_for(again))
            assert (replayed.status_code, replayed.content) == (200, answer)
        once_more = await own.post("/v1/messages", json=_message("until when?"), headers=_for(again))
        assert (once_more.status_code, once_more.json()["error"]["code"]) == (400, "cassette_mismatch")
        # The agent's part of the recording is not the client's.
        other = await own.post("/v1/messages", json=messages(), headers=_for(again))
        assert other.json()["error"]["code"] == "cassette_mismatch"
    assert not bench.asked()
    rows = await bench.ledger_of(again)
    assert [(row.purpose, row.status, row.error) for row in rows] == [
        ("client", 200, None), ("client", 200, None), ("client", 400, "cassette_mismatch"), ("client", 400, "cassette_mismatch"),
    ]  # fmt: skip
    assert not bench.endpoints.state((again.run_id, again.attempt)).provider_failed


async def test_what_the_client_knows_is_in_no_mismatch(bench: GateBench, tmp_path: Path) -> None:
    async with own_side(bench, tmp_path) as own:
        recorded, _ = await _recorded(bench, own, "which format?")
        again = await _replaying(bench, recorded)
        other = _message("which format?", FACTS.replace("4711", "4712"))
        answer = await own.post("/v1/messages", json=other, headers=_for(again))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "cassette_mismatch")
    await bench.ledger.flush()
    async with bench.db.reading() as tx:
        log = [one.payload for one in await events.read(tx, again.run_id, 0, 100)]
    (note,) = [one for one in log if one.get("kind") == "cassette_mismatch"]
    assert (note["expected_n"], note["pointer"]) == (2, "/system")
    told = answer.text + json.dumps(log)
    assert "budget" not in told
    assert "dollars" not in told


async def test_a_client_of_an_attempt_that_is_not_served_asks_nobody(bench: GateBench, tmp_path: Path) -> None:
    async with own_side(bench, tmp_path) as own:
        grant = await bench.grant()
        answer = await own.post("/v1/messages", json=_message("which format?"), headers=_for(grant))
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "run_not_served")
        assert not bench.asked()
        await bench.endpoints.open(grant, {})
        assert (await own.post("/v1/messages", json=_message("which format?"), headers=_for(grant))).status_code == 200
