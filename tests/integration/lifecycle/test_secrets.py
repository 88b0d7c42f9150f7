"""What must not be where the agent is, and what must not be in the database (faults 41, 78)."""

import hashlib
import json

import pytest

from service.domain.run_states import AttemptState, Outcome
from service.sandboxes.contract import Frame
from service.store import tokens
from tests.integration.lifecycle.stage import RIGHT, Stage

LOOK = """
import hashlib, json, os
for folder, _, names in os.walk("."):
    for name in names:
        path = os.path.join(folder, name)
        print("FILE", path, hashlib.sha256(open(path, "rb").read()).hexdigest())
print("ENV", json.dumps(dict(os.environ)))
"""


@pytest.mark.fault(78)
async def test_no_hidden_asset_is_with_an_agent(stage: Stage) -> None:
    run = await stage.run(await stage.task(), await stage.agent(code=LOOK))
    seen = await stage.output(run.id)
    hidden = hashlib.sha256(json.dumps(RIGHT).encode()).hexdigest()
    assert hashlib.sha256(b"40\n2\n").hexdigest() in seen
    assert hidden not in seen
    assert "answers.json" not in seen
    assert "solution" not in seen


async def test_the_run_token_is_a_hash_in_the_database_and_ends_with_the_attempt(stage: Stage) -> None:
    code = "import os, time; print(os.environ['WORKSTEAD_RUN_TOKEN'], flush=True); time.sleep(0.2)"
    run = await stage.submit(await stage.task(), await stage.agent(code=code))
    ctx = stage.context()
    attempt = await stage.steps(ctx, await stage.claim(ctx), AttemptState.ENDED)
    secret = (await stage.output(run.id)).strip()
    async with stage.db.reading() as tx:
        assert await tokens.authenticate(tx, secret) is None
        env = (await stage.attempts(run.id))[0].env
    assert env is not None
    assert secret not in env.values()
    await stage.steps(ctx, attempt)
    async with stage.db.reading() as tx:
        assert await tokens.authenticate(tx, secret) is None


async def test_a_run_token_is_valid_while_its_command_runs(stage: Stage) -> None:
    code = "import os, time; print(os.environ['WORKSTEAD_RUN_TOKEN'], flush=True); time.sleep(60)"
    run = await stage.submit(await stage.task(), await stage.agent(code=code), limits={"wall_clock_s": 1.5})
    ctx = stage.context()
    running = await stage.steps(ctx, await stage.claim(ctx), AttemptState.RUNNING)
    sandbox = await ctx.sandboxes.open(running.sandbox_id or "")
    frame = await anext(aiter(sandbox.output()))
    assert isinstance(frame, Frame)
    secret = frame.data.decode().strip()
    async with stage.db.reading() as tx:
        row = await tokens.authenticate(tx, secret)
    assert row is not None
    assert (row.kind, row.run_id, row.attempt) == ("run", run.id, 1)
    await stage.steps(ctx, running)
    assert (await stage.row(run.id)).outcome is not Outcome.CANCELLED
