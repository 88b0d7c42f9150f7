"""Our own loops from submission to grade, on a real store and the official SDKs; killed at each step, they go on."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from service.domain.events import Event
from service.domain.run_states import EndedBecause, Outcome
from service.lifecycle.loop_artefacts import ARTEFACTS
from service.models.scripted.scenario import Action, FileText, Scenario, ToolCall
from tests.integration.lifecycle.loops import Workshop
from tests.integration.lifecycle.stage import RIGHT, Stage
from tests.integration.lifecycle.test_takeover import DieAt, Died, claim_and_step, take_over

ANSWER = json.dumps(RIGHT)
STEPS = [
    [Action(call=ToolCall(name="list_files", arguments={})), Action(call=ToolCall(name="read_file", arguments={"path": "input.csv"}))],
    Action(run="echo once >> tries; cd output; export X=1"),
    Action(run="echo $X; pwd; wc -l < ../tries"),
    Action(write=FileText(path="output/answers.json", text=ANSWER)),
]  # fmt: skip
SCENARIOS = [
    Scenario(name="sum", steps=STEPS, final="Added up ✓"),
    Scenario(name="one-file", answers=[f'Here.\n<file name="answers.json">\n{ANSWER[:10]}', f"{ANSWER[10:]}\n</file>\n<note>Not sure.</note>"]),
    Scenario(name="asks", final="Done, as agreed.", steps=[Action(call=ToolCall(name="message_client", arguments={"text": "Which year?"}))] * 3),
    Scenario(name="client", answers=["The year is 1987.", "As I said."]),
    Scenario(name="no-file", final="I would rather talk."),
    # Not the shipped ones: those write to /workspace by its name, which here is the machine's own.
    Scenario(name="unknown", steps=[Action(call=ToolCall(name="no_such_tool", arguments={"x": 1})), Action(run="pwd")]),
    Scenario(name="invalid", steps=[Action(call=ToolCall(name="bash", arguments='{"command": ')), Action(run="pwd")]),
]  # fmt: skip


@pytest.fixture
async def workshop(stage: Stage, tmp_path: Path) -> AsyncIterator[Workshop]:
    async with Workshop.open(stage, tmp_path, *SCENARIOS) as made:
        yield made


def said(events: list[Event]) -> list[tuple[str, Any]]:
    """What a reader of the events learns, without times and numbers."""
    kinds = ("agent.message", "tool.call", "tool.result", "agent.final", "agent.warning", "client.message")
    return [(e.type, e.payload) for e in events if e.type in kinds]


async def results(stage: Stage, run_id: str) -> list[str]:
    """By the calls' ids: those that only read may end in any order."""
    found = [e.payload for e in await stage.events(run_id, "tool.result")]
    return [payload["output"] for payload in sorted(found, key=lambda one: str(one["id"]))]


@pytest.mark.parametrize("dialect", ["anthropic", "openai", "gemini"])
async def test_a_tool_agent_works_and_is_graded(workshop: Workshop, dialect: str) -> None:
    stage = workshop.stage
    run = await stage.submit(await stage.task(), await workshop.agent("tool_agent", "sum", dialect))
    await stage.work(workshop.context(), run.id)
    await stage.grade_all()
    row = await stage.row(run.id)
    assert (row.outcome, row.score, row.ended_because) == (Outcome.GRADED, 2.0, EndedBecause.COMPLETED)
    assert (row.turns, row.tool_calls) == (5, 5)
    found = await results(stage, run.id)
    assert "40" in found[1]
    lines = found[3].split()
    assert (lines[0], lines[2], lines[1].endswith("/output")) == ("1", "1", True)
    (final,) = await stage.events(run.id, "agent.final")
    assert (final.payload["status"], final.payload["text"]) == ("success", "Added up ✓")


@pytest.mark.fault(111)
@pytest.mark.parametrize("point", ["loop.acted", "loop.recorded"])
@pytest.mark.parametrize("after", [0, 1, 3, 4, 6, 9])
async def test_killed_at_any_step_it_goes_on_and_repeats_nothing(workshop: Workshop, point: str, after: int) -> None:
    stage = workshop.stage
    run = await stage.submit(await stage.task(), await workshop.agent("tool_agent", "sum"))
    with pytest.raises((Died, BaseExceptionGroup)):
        await claim_and_step(stage, workshop.context(crash=DieAt(point=point, after=after)))
    await stage.steps(workshop.context(), await take_over(stage))
    await stage.grade_all()
    row = await stage.row(run.id)
    assert (row.outcome, row.score, row.turns, row.tool_calls) == (Outcome.GRADED, 2.0, 5, 5)
    events = said(await stage.events(run.id))
    kinds = [kind for kind, _ in events]
    assert (kinds.count("tool.call"), kinds.count("tool.result"), kinds.count("agent.final")) == (5, 5, 1)
    assert (await results(stage, run.id))[3].split()[2] == "1"  # the command that appends ran once


async def test_a_single_response_is_joined_read_and_graded(workshop: Workshop) -> None:
    stage = workshop.stage
    run = await stage.submit(await stage.task(), await workshop.agent("single_response", "one-file"))
    await stage.work(workshop.context(), run.id)
    await stage.grade_all()
    row = await stage.row(run.id)
    assert (row.outcome, row.score, row.ended_because) == (Outcome.GRADED, 2.0, EndedBecause.COMPLETED)
    (final,) = await stage.events(run.id, "agent.final")
    assert (final.payload["detail"]["n_calls"], final.payload["detail"]["truncated"]) == (2, False)
    (attempt,) = await stage.attempts(run.id)
    note = attempt.provenance[ARTEFACTS]["note_to_client"]
    assert stage.blobs.read_bytes(note["sha256"]) == b"Not sure."


async def test_a_single_response_without_files_says_so(workshop: Workshop) -> None:
    stage = workshop.stage
    run = await stage.submit(await stage.task(), await workshop.agent("single_response", "no-file"))
    await stage.work(workshop.context(), run.id)
    (final,) = await stage.events(run.id, "agent.final")
    assert (final.payload["status"], final.payload["reason"]) == ("error", "no_files")
    assert (await stage.row(run.id)).ended_because is EndedBecause.SCAFFOLD_ERROR


async def test_an_endless_loop_ends_at_its_turns(workshop: Workshop) -> None:
    stage = workshop.stage
    run = await stage.submit(await stage.task(), await workshop.agent("tool_agent", "endless", max_turns=4))
    await stage.work(workshop.context(), run.id)
    (final,) = await stage.events(run.id, "agent.final")
    assert (final.payload["status"], final.payload["reason"]) == ("limit", "max_turns")
    assert (await stage.row(run.id)).turns == 4


@pytest.mark.parametrize("scenario", ["unknown", "invalid"])
async def test_nonsense_calls_are_results(workshop: Workshop, scenario: str) -> None:
    stage = workshop.stage
    run = await stage.submit(await stage.task(), await workshop.agent("tool_agent", scenario))
    await stage.work(workshop.context(), run.id)
    first = (await stage.events(run.id, "tool.result"))[0].payload
    assert first["is_error"] is True
    (final,) = await stage.events(run.id, "agent.final")
    assert final.payload["status"] == "success"


@pytest.mark.parametrize(
    ("scenario", "reason"), [("refusal", "refused"), ("empty", "empty_answers"), ("e401", "model_refused")]
)
async def test_what_the_model_does_not_do_has_a_reason(workshop: Workshop, scenario: str, reason: str) -> None:
    stage = workshop.stage
    run = await stage.submit(await stage.task(), await workshop.agent("tool_agent", scenario))
    await stage.work(workshop.context(), run.id)
    (final,) = await stage.events(run.id, "agent.final")
    assert (final.payload["status"], final.payload["reason"]) == ("error", reason)
    assert (await stage.row(run.id)).ended_because is EndedBecause.SCAFFOLD_ERROR


async def test_a_lost_sandbox_ends_it_at_once(workshop: Workshop) -> None:
    stage = workshop.stage
    run = await stage.submit(await stage.task(), await workshop.agent("tool_agent", "sleep"), max_attempts=1)
    ctx = workshop.context()

    async def destroy() -> None:
        from tests.integration.lifecycle.stage import until

        await until(lambda: stage.has_event(run.id, "tool.call"))
        for sandbox_id in list(stage.machine.sandboxes):
            await ctx.sandboxes.backend.remove(sandbox_id)

    import asyncio

    await asyncio.gather(stage.work(ctx, run.id), destroy())
    assert (await stage.row(run.id)).ended_because is EndedBecause.SANDBOX_LOST


@pytest.mark.parametrize("after", [None, 1, 2])
async def test_the_client_answers_from_facts_that_the_agent_never_sees(workshop: Workshop, after: int | None) -> None:
    stage = workshop.stage
    agent = await workshop.agent("tool_agent", "asks")
    client = await workshop.model("client")
    facts = await stage.upload("client/facts.md", b"The year is 1987. SECRET-FACT-XYZ")
    task = await stage.task(
        client={"facts": "client/facts.md", "max_messages": 2, "model": client}, hidden=[facts], graders=[]
    )
    run = await stage.submit(task, agent)
    if after is None:
        await stage.work(workshop.context(), run.id)
    else:
        with pytest.raises(Died):
            await claim_and_step(stage, workshop.context(crash=DieAt(point="loop.recorded", after=after)))
        await stage.steps(workshop.context(), await take_over(stage))
    messages = [(e.payload["n"], e.payload["direction"]) for e in await stage.events(run.id, "client.message")]
    assert messages == [(1, "to_client"), (1, "to_agent"), (2, "to_client"), (2, "to_agent")]
    outputs = await results(stage, run.id)
    assert "The year is 1987." in outputs[0]
    assert "answers no more" in outputs[2]
    (attempt,) = await stage.attempts(run.id)
    kept = json.loads(stage.blobs.read_bytes(attempt.provenance[ARTEFACTS]["client_transcript"]["sha256"]))
    assert [m["from"] for m in kept["messages"]] == ["agent", "client"] * 2
    asked = workshop.provider.requests()
    told = [b"SECRET-FACT-XYZ" in exchange.body for exchange in asked if exchange.model.endswith("@client")]
    assert told == [True, True]
    assert not any(b"SECRET-FACT-XYZ" in exchange.body for exchange in asked if exchange.model.endswith("@asks"))
    assert "SECRET-FACT-XYZ" not in json.dumps([e.payload for e in await stage.events(run.id)])
