"""A remote driver asks the task's simulated client: as our loops do, over REST and MCP, and over the worker's death."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from service.domain.run_states import EndedBecause, Outcome
from service.lifecycle.loop_artefacts import ARTEFACTS
from service.models.scripted.scenario import Scenario
from service.store.rows import RunRow
from tests.integration.driving.remote import Remote
from tests.integration.driving.test_mcp import session, text
from tests.integration.lifecycle.loops import Workshop
from tests.integration.lifecycle.stage import Stage, until
from tests.integration.lifecycle.test_takeover import DieAt

FACTS = b"The year is 1987. SECRET-FACT-XYZ"
CLIENT = Scenario(name="client", answers=["The year is 1987.", "As I said.", "Once more: 1987."])


@pytest.fixture
async def workshop(stage: Stage, tmp_path: Path) -> AsyncIterator[Workshop]:
    async with Workshop.open(stage, tmp_path, CLIENT) as made:
        yield made


@pytest.fixture
async def remote(stage: Stage, workshop: Workshop) -> AsyncIterator[Remote]:
    async with Remote.open(stage) as made:
        made.models = workshop.models
        yield made


async def begun(remote: Remote, workshop: Workshop, scenario: str = "client", kind: str = "remote") -> RunRow:
    """A run of a task whose client answers two messages, claimed."""
    facts = await remote.stage.upload("client/facts.md", FACTS)
    client = {"facts": "client/facts.md", "max_messages": 2, "model": await workshop.model(scenario)}
    task = await remote.stage.task(client=client, hidden=[facts], graders=[])
    run = await remote.begin(await remote.agent(kind), task)
    await remote.claim(run.id)
    return run


async def ask(remote: Remote, run: RunRow, status: int = 200, **body: Any) -> Any:
    return await remote.call("POST", f"/v1/runs/{run.id}/messages", status, json={"text": "Which year?"} | body)


async def finished(remote: Remote, run: RunRow) -> RunRow:
    await remote.call("POST", f"/v1/runs/{run.id}/finish", 202, json={})
    return await remote.end(run.id)


async def test_the_client_answers_as_often_as_the_task_says(remote: Remote, workshop: Workshop) -> None:
    stage, run = remote.stage, await begun(remote, workshop)
    assert (await remote.call("GET", f"/v1/runs/{run.id}/assignment"))["client_messages"] == 2
    first = await ask(remote, run, attachments=[{"name": "draft.txt", "content": "A draft."}])
    assert (first["text"], first["left"]) == ("The year is 1987.", 1)
    again = await ask(remote, run, message_id=first["message_id"])
    assert (again["text"], again["left"]) == ("The year is 1987.", 1)
    second = await ask(remote, run, text="Sure?", message_id="two")
    assert (second["text"], second["left"]) == ("As I said.", 0)
    problem = await ask(remote, run, 409, text="And now?")
    assert problem["type"].endswith(":no_messages_left")
    assert (await finished(remote, run)).ended_because is EndedBecause.COMPLETED

    told = [(e.payload["n"], e.payload["direction"]) for e in await stage.events(run.id, "client.message")]
    assert told == [(1, "to_client"), (1, "to_agent"), (2, "to_client"), (2, "to_agent")]
    calls = [e.payload["name"] for e in await stage.events(run.id, "tool.call")]
    assert calls == ["message_client"] * 3
    results = [e.payload for e in await stage.events(run.id, "tool.result")]
    assert [r["is_error"] for r in results] == [False, False, True]
    assert "SECRET-FACT-XYZ" not in json.dumps([e.payload for e in await stage.events(run.id)])
    (attempt,) = await stage.attempts(run.id)
    kept = json.loads(stage.blobs.read_bytes(attempt.provenance[ARTEFACTS]["client_transcript"]["sha256"]))
    assert [m["from"] for m in kept["messages"]] == ["agent", "client"] * 2
    assert "[attached: draft.txt]\nA draft." in kept["messages"][0]["text"]
    asked = workshop.provider.requests()
    assert [b"SECRET-FACT-XYZ" in exchange.body for exchange in asked] == [True, True]
    assert b"Which year?" in asked[1].body  # the client remembers


@pytest.mark.fault(111)
@pytest.mark.parametrize("point", ["loop.acted", "loop.recorded", "client_message.answered"])
async def test_a_message_outlives_the_worker_and_counts_once(remote: Remote, workshop: Workshop, point: str) -> None:
    stage = remote.stage
    facts = await stage.upload("client/facts.md", FACTS)
    client = {"facts": "client/facts.md", "max_messages": 2, "model": await workshop.model("client")}
    task = await stage.task(client=client, hidden=[facts], graders=[])
    run = await stage.submit(task, await remote.agent())
    died = DieAt(point=point, after=0)
    await remote.start_worker(run.id, crash=died)
    await until(lambda: stage.has_event(run.id, "run.ready"))
    await remote.claim(run.id)
    asking = asyncio.create_task(ask(remote, run, message_id="one"))
    await until(lambda: _reached(died))
    await remote.kill_worker()
    await remote.start_worker(run.id)
    assert (await asking)["left"] == 1
    assert len(await stage.events(run.id, "client.message")) == 2
    assert len(workshop.provider.requests()) == (2 if point == "loop.acted" else 1)
    assert (await ask(remote, run))["left"] == 0
    assert (await finished(remote, run)).outcome is Outcome.UNGRADED


async def _reached(died: DieAt) -> bool:
    return bool(died.passes)


async def test_messages_of_one_run_are_answered_in_turn(remote: Remote, workshop: Workshop) -> None:
    run = await begun(remote, workshop)
    found = await asyncio.gather(*(ask(remote, run, message_id=f"m{n}") for n in range(2)))
    assert sorted(one["left"] for one in found) == [0, 1]
    assert len(workshop.provider.requests()) == 2
    await ask(remote, run, 409)


async def test_the_official_mcp_client_asks(remote: Remote, workshop: Workshop) -> None:
    run = await begun(remote, workshop)
    async with session(remote, run.id) as mcp:
        await mcp.initialize()
        assert "message_client" in [t.name for t in (await mcp.list_tools()).tools]
        said = await mcp.call_tool("message_client", {"text": "Which year?"})
        assert text(said) == "The year is 1987.\n\n[1 messages to the client left]"
        assert "bad_arguments" in text(await mcp.call_tool("message_client", {"text": ""}))


async def test_a_person_has_no_simulated_client(remote: Remote, workshop: Workshop) -> None:
    run = await begun(remote, workshop, kind="person")
    assert (await remote.call("GET", f"/v1/runs/{run.id}/assignment"))["client_messages"] is None
    problem = await ask(remote, run, 409)
    assert problem["type"].endswith(":not_for_people")
    assert not await remote.stage.events(run.id, "tool.call")


async def test_what_no_client_would_get(remote: Remote, workshop: Workshop) -> None:
    plain = await remote.begin()
    await remote.claim(plain.id)
    assert (await ask(remote, plain, 404))["type"].endswith(":no_client")
    await ask(remote, plain, 422, text="")
    await ask(remote, plain, 422, text="x" * 20_001)
    assert (await ask(remote, plain, 422, text="a\0b"))["type"].endswith("bad_text")
    twice = [{"name": "a", "content": "1"}, {"name": "a", "content": "2"}]
    assert (await ask(remote, plain, 422, attachments=twice))["type"].endswith(":bad_attachments")
    external = await remote.stage.submit(await remote.stage.task(), await remote.agent("external"))
    assert (await ask(remote, external, 409))["type"].endswith(":not_remote")
    remote.lease = "wrong"
    assert (await ask(remote, plain, 409))["type"].endswith(":lease_lost")
    assert not await remote.stage.events(plain.id, "tool.call")


async def test_a_client_that_fails_is_said_and_not_counted(remote: Remote, workshop: Workshop) -> None:
    run = await begun(remote, workshop, "e500")
    assert (await ask(remote, run, 503))["type"].endswith(":client_unavailable")
    assert not await remote.stage.events(run.id, "client.message")
    (result,) = await remote.stage.events(run.id, "tool.result")
    assert result.payload["is_error"] is True
