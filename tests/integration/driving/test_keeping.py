"""Sandboxes kept after a failure, and runs whose agent is started by hand."""

import asyncio
import time
from typing import Any

import pytest

from service.domain.run_states import EndedBecause, Flag, Outcome, StopMode
from tests.integration.driving.remote import Remote
from tests.integration.lifecycle.stage import WRITE_RIGHT, Stage, until

FAILS = f"{WRITE_RIGHT}; raise SystemExit(3)"


async def test_a_failed_run_is_kept_and_graded_as_it_was(stage: Stage) -> None:
    began = time.monotonic()
    run = await stage.run(await stage.task(), await stage.agent(code=FAILS), keep_on_failure_s=1.5)
    assert time.monotonic() - began > 1.5
    assert (run.ended_because, run.outcome, run.score) == (EndedBecause.SCAFFOLD_ERROR, Outcome.GRADED, 2.0)
    (note,) = await stage.events(run.id, "note")
    assert note.payload["seconds"] == 1.5
    assert not stage.machine.sandboxes


async def test_a_completed_run_is_not_kept(stage: Stage) -> None:
    run = await asyncio.wait_for(stage.run(await stage.task(), await stage.agent(), keep_on_failure_s=600), 60)
    assert run.ended_because is EndedBecause.COMPLETED
    assert not await stage.events(run.id, "note")


@pytest.mark.parametrize("successor", [False, True])
async def test_discard_ends_the_keeping_also_of_a_successor(stage: Stage, successor: bool) -> None:
    run = await stage.submit(await stage.task(), await stage.agent(code=FAILS), keep_on_failure_s=600)
    work: asyncio.Task[Any] = asyncio.create_task(stage.work(stage.context(), run.id))
    await until(lambda: stage.has_event(run.id, "note"))
    if successor:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        latest = (await stage.attempts(run.id))[0]
        work = asyncio.create_task(stage.steps(stage.context(), latest))
        await asyncio.sleep(0.2)
    assert not work.done()
    await stage.stop(run.id, StopMode.DISCARD)
    await asyncio.wait_for(work, 30)
    assert len(await stage.events(run.id, "note")) == 1
    assert (await stage.row(run.id)).outcome is Outcome.CANCELLED


async def test_a_manual_run_has_the_scaffolds_files_and_starts_nothing(remote: Remote) -> None:
    file = await remote.stage.upload("tool.sh", b"echo from the kit")
    agent = await remote.stage.agent(code="open('output/started', 'w')", files=[file])
    run = await remote.begin(agent, manual=True)
    await remote.claim(run.id)
    done = await remote.exec(run.id, "sh", ".home/kit/tool.sh")
    assert done["stdout"] == "from the kit\n"
    assert (await remote.exec(run.id, "ls", "output/started"))["code"] != 0
    assert (await remote.stage.attempts(run.id))[0].argv
    await remote.call("POST", f"/v1/runs/{run.id}/finish", 202, json={})
    row = await remote.end(run.id)
    assert row.ended_because is EndedBecause.COMPLETED
    assert Flag.ASSISTED in row.flags
