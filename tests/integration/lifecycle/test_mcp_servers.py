"""A tool agent with a real MCP server in its sandbox: its tools are tools like others, also for a successor."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from service.domain.run_states import EndedBecause
from service.models.scripted.scenario import Action, Scenario, ToolCall
from tests.integration.lifecycle.loops import Workshop
from tests.integration.lifecycle.stage import Stage
from tests.integration.lifecycle.test_takeover import DieAt, Died, claim_and_step, take_over
from tests.unit.scaffolds.tool_agent import mcp_server

SERVER: dict[str, Any] = {"command": [sys.executable, mcp_server.__file__], "deny": ["much"]}


def step(tool: str, **arguments: Any) -> Action:
    return Action(call=ToolCall(name=f"mcp__small__{tool}", arguments=arguments))


SCENARIOS = [
    Scenario(name="counts", steps=[step("add", a=40, b=2), step("count"), step("count")], final="Counted."),
    Scenario(name="suffers", final="Done.", steps=[
        step("fail"), step("die"), step("hang"), step("count"), step("add", a="no number"), step("much"), step("nothing"),
    ]),
]  # fmt: skip


@pytest.fixture
async def workshop(stage: Stage, tmp_path: Path) -> AsyncIterator[Workshop]:
    async with Workshop.open(stage, tmp_path, *SCENARIOS) as made:
        yield made


async def told(stage: Stage, run_id: str) -> list[tuple[str, bool]]:
    return [(e.payload["output"], e.payload["is_error"]) for e in await stage.events(run_id, "tool.result")]


async def test_its_tools_are_tools_like_others(workshop: Workshop) -> None:
    stage = workshop.stage
    agent = await workshop.agent("tool_agent", "counts", "gemini", mcp_servers={"small": SERVER})
    run = await stage.submit(await stage.task(graders=[]), agent)
    await stage.work(workshop.context(), run.id)
    assert await told(stage, run.id) == [("42 ✓", False), ("1", False), ("2", False)]
    row = await stage.row(run.id)
    assert (row.ended_because, row.tool_calls) == (EndedBecause.COMPLETED, 3)
    assert b"mcp__small__much" not in workshop.provider.requests()[0].body
    (attempt,) = await stage.attempts(run.id)
    assert attempt.provenance["mcp_servers"] == ["small"]


@pytest.mark.fault(111)
@pytest.mark.parametrize(("point", "after"), [("loop.acted", 0), ("loop.acted", 4), ("loop.recorded", 4)])
async def test_a_successor_repeats_no_call(workshop: Workshop, point: str, after: int) -> None:
    stage = workshop.stage
    agent = await workshop.agent("tool_agent", "counts", mcp_servers={"small": SERVER})
    run = await stage.submit(await stage.task(graders=[]), agent)
    with pytest.raises((Died, BaseExceptionGroup)):
        await claim_and_step(stage, workshop.context(crash=DieAt(point=point, after=after)))
    await stage.steps(workshop.context(), await take_over(stage))
    assert await told(stage, run.id) == [("42 ✓", False), ("1", False), ("2", False)]


async def test_a_server_that_dies_or_hangs_is_an_error_of_the_call(workshop: Workshop) -> None:
    stage = workshop.stage
    agent = await workshop.agent("tool_agent", "suffers", mcp_servers={"small": {**SERVER, "timeout_s": 2}})
    run = await stage.submit(await stage.task(graders=[]), agent)
    await stage.work(workshop.context(), run.id)
    failed, died, hung, counted, wrong, denied, unknown = await told(stage, run.id)
    assert (await stage.row(run.id)).ended_because is EndedBecause.COMPLETED
    assert "fail" in failed[0]
    assert "my last words" in died[0]
    assert hung[0] == "MCP server small: no answer in 2 s"
    assert counted == ("1", False)
    assert wrong[1] is True
    assert denied[0].startswith("there is no tool 'mcp__small__much'")
    assert all(one[1] for one in (failed, died, hung, denied, unknown))


async def test_a_server_that_is_none_leaves_a_run_without_its_tools(workshop: Workshop) -> None:
    stage = workshop.stage
    agent = await workshop.agent("tool_agent", "counts", mcp_servers={"small": {"command": ["/no/server"]}})
    run = await stage.submit(await stage.task(graders=[]), agent)
    await stage.work(workshop.context(), run.id)
    (warning,) = await stage.events(run.id, "agent.warning")
    assert "its tools are not offered: /no/server cannot be started" in warning.payload["text"]
    assert (await stage.row(run.id)).ended_because is EndedBecause.COMPLETED
