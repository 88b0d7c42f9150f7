"""An agent that speaks the Agent Client Protocol, from submission to grade. What it may do wrong: tests/unit."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.run_states import EndedBecause, Outcome
from service.store import agents, output, scaffolds
from service.store.rows import RunRow
from tests.integration.lifecycle.stage import Stage

PROGRAM = (Path(__file__).parents[2] / "unit/scaffolds/acp/agent.py").read_bytes()


async def agent(stage: Stage, how: str, acp: Mapping[str, Any] | None = None) -> str:
    file = await stage.upload("agent.py", PROGRAM)
    manifest = ScaffoldManifest.model_validate(
        {
            "name": "speaker", "version": "1", "kind": "acp", "files": [file], "acp": acp,
            "argv": ["/usr/bin/env", "python3", ".home/kit/agent.py", how],
        }
    )  # fmt: skip
    async with stage.db.transaction() as tx:
        await scaffolds.register(tx, stage.project.id, manifest)
        return (await agents.create(tx, stage.project.id, AgentSpec(scaffold="speaker@1")))[0].id


async def final(stage: Stage, row: RunRow) -> tuple[str, str]:
    (event,) = await stage.events(row.id, "agent.final")
    return event.payload["status"], event.payload["reason"]


async def test_it_works_and_is_graded(stage: Stage) -> None:
    row = await stage.run(await stage.task(), await agent(stage, "well"))
    said = [(e.type, e.payload) for e in await stage.events(row.id)][-12:]
    assert (row.outcome, row.score, row.ended_because) == (Outcome.GRADED, 2.0, EndedBecause.COMPLETED), said
    assert await final(stage, row) == ("success", "end_turn")
    (asked,) = await stage.events(row.id, "agent.permission")
    assert (asked.payload["kind"], asked.payload["decision"]) == ("edit", "allow")
    assert len(await stage.events(row.id, "tool.call")) == len(await stage.events(row.id, "tool.result")) == 2
    (attempt,) = await stage.attempts(row.id)
    assert attempt.provenance["acp_command"][-1] == "well"


async def test_what_it_says_last_counts_while_something_earlier_is_still_being_written(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = output.note

    async def slowly(*arguments: Any, **fields: Any) -> None:
        await asyncio.sleep(0.5)  # the program ends meanwhile
        await note(*arguments, **fields)

    monkeypatch.setattr(output, "note", slowly)
    row = await stage.run(await stage.task(), await agent(stage, "well"))
    assert row.ended_because is EndedBecause.COMPLETED


async def test_what_is_denied_is_not_done(stage: Stage) -> None:
    row = await stage.run(await stage.task(), await agent(stage, "well", {"permission_by_kind": {"edit": "deny"}}))
    said = [(e.type, e.payload) for e in await stage.events(row.id)][-12:]
    assert (row.score, row.ended_because) == (0.0, EndedBecause.COMPLETED), said
    (asked,) = await stage.events(row.id, "agent.permission")
    assert asked.payload["decision"] == "deny"


async def test_a_crash_is_the_scaffolds(stage: Stage) -> None:
    row = await stage.run(await stage.task(), await agent(stage, "crash"))
    assert row.ended_because is EndedBecause.SCAFFOLD_ERROR
    assert await final(stage, row) == ("error", "agent_ended")


async def test_a_session_without_an_end_is_cancelled_at_the_wall_clock(stage: Stage) -> None:
    task = await stage.task(limits={"wall_clock_s": 4, "memory_bytes": 64 << 20, "disk_bytes": 64 << 20})
    row = await stage.run(task, await agent(stage, "endless"))
    assert row.ended_because is EndedBecause.WALL_CLOCK
    assert await final(stage, row) == ("error", "cancelled")
