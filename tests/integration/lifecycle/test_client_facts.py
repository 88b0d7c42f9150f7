"""Facts of a simulated client: made once by a model, then used by runs; nothing of them gets to the agent."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.domain.errors import Invalid
from service.domain.operations import OperationState
from service.domain.run_states import EndedBecause
from service.lifecycle.client_facts import TEMPLATE
from service.lifecycle.loop_artefacts import ARTEFACTS
from service.lifecycle.operations.client_facts import KIND, FactsSpec
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.perform import perform
from service.lifecycle.own_side import OwnWay
from service.lifecycle.simulated_client import NO_WORDS
from service.models.scripted.scenario import Action, Scenario, ToolCall
from service.store import client_facts, operations
from service.store.rows import OperationRow
from service.store.rows_models import ClientFactsRow
from service.workers.attempt_loop import Patience, run_attempt
from tests.integration.lifecycle.loops import Workshop
from tests.integration.lifecycle.stage import Stage
from tests.integration.lifecycle.test_takeover import DieAt, Died

SHEET = "- The report is for 1987. SECRET-FACT-XYZ"
ASK = Action(call=ToolCall(name="message_client", arguments={"text": "Which year?"}))
SCENARIOS = [
    Scenario(name="writes", answers=[SHEET]),
    Scenario(name="asks", final="Done.", steps=[ASK]),
    Scenario(name="client", answers=["1987."]),
]


@pytest.fixture
async def workshop(stage: Stage, tmp_path: Path) -> AsyncIterator[Workshop]:
    (tmp_path / "service-token").write_text("of-our-own-processes\n")
    async with Workshop.open(stage, tmp_path, *SCENARIOS) as made:
        yield made


def context(workshop: Workshop, **changes: Any) -> OperationContext:
    socket = Path(workshop.models.local_socket)
    way = OwnWay(socket, socket.parent / "service-token")
    ctx = OperationContext(workshop.stage.db, workshop.stage.blobs, first_pause_s=0.01, gateway=way)
    return replace(ctx, **changes)


async def begin(workshop: Workshop, task: str, model: str, seed: int = 1) -> str:
    spec = FactsSpec(task_id=task, model=model, template=TEMPLATE, seed=seed, author="tok_1")
    async with workshop.stage.db.transaction() as tx:
        return (await operations.create(tx, workshop.stage.project.id, KIND, spec.model_dump(mode="json"))).id


async def ended(workshop: Workshop, operation_id: str) -> OperationRow:
    async with workshop.stage.db.reading() as tx:
        row = await operations.get(tx, workshop.stage.project.id, operation_id)
    assert row is not None
    return row


async def kept(workshop: Workshop, task: str) -> ClientFactsRow | None:
    async with workshop.stage.db.reading() as tx:
        return await client_facts.get(tx, workshop.stage.project.id, task)


async def test_they_are_made_once_and_a_run_uses_them(workshop: Workshop) -> None:
    stage = workshop.stage
    client, writer = await workshop.model("client"), await workshop.model("writes", "openai")
    task = await stage.task(client={"max_messages": 2, "model": client}, graders=[])
    agent = await workshop.agent("tool_agent", "asks")
    with pytest.raises(Invalid, match="knows nothing yet") as refused:
        await stage.submit(task, agent)
    assert refused.value.type == "client_facts_missing"
    operation = await begin(workshop, task, writer)
    await perform(context(workshop), operation)
    row = await ended(workshop, operation)
    assert (row.state, row.problem) == (OperationState.SUCCEEDED, None)
    assert row.result is not None
    assert (row.result["created"], row.result["model"], row.result["template"]) == (True, writer, TEMPLATE)
    assert "SECRET-FACT-XYZ" not in json.dumps([row.result, row.log])
    made = await kept(workshop, task)
    assert made is not None
    assert stage.blobs.read_bytes(made.sha256).decode() == f"{SHEET}\n"
    prompt = stage.blobs.read_bytes(made.prompt_sha256).decode()
    assert "Add up input.csv." in prompt
    assert "input.csv (5 bytes)" in prompt
    assert "answers.json" not in prompt  # hidden
    assert (made.author, made.operation_id, made.seed) == ("tok_1", operation, 1)

    run = await stage.submit(task, agent)
    await stage.work(workshop.context(), run.id)
    asked = workshop.provider.requests()
    told = [exchange.model for exchange in asked if b"SECRET-FACT-XYZ" in exchange.body]
    assert [model.rpartition("@")[2] for model in told] == ["client"]
    assert "SECRET-FACT-XYZ" not in json.dumps([e.payload for e in await stage.events(run.id)])
    (attempt,) = await stage.attempts(run.id)
    text = stage.blobs.read_bytes(attempt.provenance[ARTEFACTS]["client_transcript"]["sha256"])
    assert json.loads(text)["facts_sha256"] == made.sha256
    assert b"SECRET-FACT-XYZ" not in text


@pytest.mark.fault(111)
async def test_killed_after_the_answer_it_asks_again_and_keeps_one(workshop: Workshop) -> None:
    stage, writer = workshop.stage, await workshop.model("writes")
    task = await stage.task(client={"model": writer})
    operation = await begin(workshop, task, writer)
    with pytest.raises(Died):
        await perform(context(workshop, crash=DieAt(point="client_facts.asked", after=0)), operation)
    assert await kept(workshop, task) is None
    await perform(context(workshop), operation)
    assert (await ended(workshop, operation)).state is OperationState.SUCCEEDED
    assert len(workshop.provider.requests()) == 2
    again = await begin(workshop, task, writer)
    await perform(context(workshop), again)
    result = (await ended(workshop, again)).result
    assert result is not None
    assert result["created"] is False
    assert len(workshop.provider.requests()) == 2


async def test_two_at_once_keep_one_sheet(workshop: Workshop) -> None:
    writer = await workshop.model("writes")
    task = await workshop.stage.task(client={"model": writer})
    both = [await begin(workshop, task, writer), await begin(workshop, task, writer, seed=2)]
    await asyncio.gather(*(perform(context(workshop), one) for one in both))
    rows = [await ended(workshop, one) for one in both]
    made = await kept(workshop, task)
    assert made is not None
    (good,) = [row for row in rows if row.state is OperationState.SUCCEEDED]
    (bad,) = [row for row in rows if row.state is OperationState.FAILED]
    assert made.operation_id == good.id
    assert bad.problem is not None
    assert bad.problem["type"] == "client_facts_exist"


@pytest.mark.parametrize(
    ("scenario", "type"), [("refusal", "facts_not_made"), ("empty", "facts_not_made"), ("e401", "model_refused")]
)
async def test_what_is_no_sheet_is_not_kept(workshop: Workshop, scenario: str, type: str) -> None:
    writer = await workshop.model(scenario)
    task = await workshop.stage.task(client={"model": writer})
    operation = await begin(workshop, task, writer)
    await perform(context(workshop), operation)
    row = await ended(workshop, operation)
    assert row.state is OperationState.FAILED
    assert row.problem is not None
    assert row.problem["type"] == type
    assert await kept(workshop, task) is None


async def test_without_a_gateway_it_fails_in_words(workshop: Workshop) -> None:
    writer = await workshop.model("writes")
    task = await workshop.stage.task(client={"model": writer})
    operation = await begin(workshop, task, writer)
    await perform(context(workshop, gateway=None, tries=1), operation)
    problem = (await ended(workshop, operation)).problem
    assert problem is not None
    assert (problem["type"], problem["status"]) == ("gateway_unavailable", 503)


async def asking(workshop: Workshop, scenario: str) -> str:
    """Submit a run of an agent that asks a client who follows the scenario."""
    stage = workshop.stage
    facts = await stage.upload("client.md", SHEET.encode())
    client = {"facts": "client.md", "model": await workshop.model(scenario)}
    task = await stage.task(client=client, hidden=[facts], graders=[])
    return (await stage.submit(task, await workshop.agent("tool_agent", "asks"), max_attempts=1)).id


async def test_a_client_that_fails_is_asked_again_and_never_silent(workshop: Workshop) -> None:
    """The gateway ends such an attempt; without its word the loop waits for the client to come back."""
    stage, run_id = workshop.stage, await asking(workshop, "e500-once")
    await stage.work(workshop.context(), run_id)
    words = [e.payload["text"] for e in await stage.events(run_id, "client.message")]
    assert len(words) == 2
    assert NO_WORDS not in words
    (final,) = await stage.events(run_id, "agent.final")
    assert final.payload["status"] == "success"


async def test_a_client_that_is_not_there_ends_it_as_our_failure(workshop: Workshop) -> None:
    stage, run_id = workshop.stage, await asking(workshop, "e404")
    ctx = workshop.context()
    await run_attempt(ctx, await stage.claim(ctx), Patience(tries=2, first_pause_s=0.01))
    assert (await stage.row(run_id)).ended_because is EndedBecause.INFRA_ERROR
    assert not await stage.events(run_id, "client.message")


async def test_a_client_that_refuses_says_nothing(workshop: Workshop) -> None:
    stage, run_id = workshop.stage, await asking(workshop, "e400")
    await stage.work(workshop.context(), run_id)
    words = [e.payload["text"] for e in await stage.events(run_id, "client.message")]
    assert words[1] == NO_WORDS
