"""Which side of ``start`` a dead worker was on is known from the row: files are written before it only."""

import pytest

from service.store.rows import AttemptRow
from tests.integration.lifecycle.stage import Stage
from tests.integration.lifecycle.test_takeover import DieAt, Died, claim_and_step, take_over

CODE = """
import os, time
open("input.csv", "w").write("mine")
print("changed", flush=True)
time.sleep(1)
print(open("input.csv").read(), flush=True)
"""


async def test_files_are_not_written_again_once_the_command_may_run(stage: Stage) -> None:
    run = await stage.submit(await stage.task(), await stage.agent(code=CODE))
    with pytest.raises(Died):
        await claim_and_step(stage, stage.context(crash=DieAt(point="provision.started")))
    ctx = stage.context()
    attempt: AttemptRow = await take_over(stage)
    sandbox = await ctx.sandboxes.open(attempt.sandbox_id or "")
    await anext(aiter(sandbox.output()))
    await stage.steps(ctx, attempt)
    assert await stage.output(run.id) == "changed\nmine\n"


async def test_files_are_written_again_if_it_cannot_have_started(stage: Stage) -> None:
    run = await stage.submit(await stage.task(), await stage.agent(code="print(open('input.csv').read())"))
    with pytest.raises(Died):
        await claim_and_step(stage, stage.context(crash=DieAt(point="provision.bound")))
    ctx = stage.context()
    await stage.steps(ctx, await take_over(stage))
    assert await stage.output(run.id) == "40\n2\n\n"
