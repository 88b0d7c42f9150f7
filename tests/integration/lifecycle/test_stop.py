"""Stop in every phase, and races of stop with everything else (fault 122)."""

import asyncio
import time

import pytest

from service.domain.errors import Conflict, NotFound
from service.domain.run_states import AttemptState, EndedBecause, Outcome, Phase, StopMode
from service.domain.verdicts import VerdictState
from service.lifecycle import STEPS
from service.lifecycle.delete import delete_run
from service.lifecycle.regrading import regrade
from service.store import gradings
from tests.integration.lifecycle.stage import RIGHT, WRITE_RIGHT, Stage, until

SLEEP = "import json, time; json.dump(%r, open('output/answers.json', 'w')); print('ready', flush=True); time.sleep(60)"
MODES = list(StopMode)


@pytest.mark.parametrize("mode", MODES)
async def test_a_queued_run_is_cancelled_at_once(stage: Stage, mode: StopMode) -> None:
    run = await stage.submit(await stage.task(), await stage.agent())
    row = await stage.stop(run.id, mode)
    assert (row.phase, row.outcome, row.ended_because) == (Phase.DONE, Outcome.CANCELLED, EndedBecause.CANCELLED)
    await stage.work(stage.context(), run.id)
    assert await stage.attempts(run.id) == []


@pytest.mark.parametrize(
    ("mode", "outcome", "cause", "score"),
    [
        (StopMode.COLLECT, Outcome.GRADED, EndedBecause.STOPPED, 2.0),
        (StopMode.DISCARD, Outcome.CANCELLED, EndedBecause.CANCELLED, None),
        (StopMode.FINISH, Outcome.GRADED, EndedBecause.WALL_CLOCK, 2.0),
    ],
)
async def test_a_running_run_ends_by_the_mode(
    stage: Stage, mode: StopMode, outcome: Outcome, cause: EndedBecause, score: float | None
) -> None:
    run = await stage.submit(await stage.task(), await stage.agent(code=SLEEP % RIGHT), limits={"grace_s": 0.3})
    work = asyncio.create_task(stage.work(stage.context(), run.id))
    await until(lambda: stage.has_event(run.id, "output"))
    asked = time.monotonic()
    await stage.stop(run.id, mode)
    await until(lambda: stage.has_event(run.id, "attempt.ended"))
    took = time.monotonic() - asked
    await work
    await stage.grade_all()
    row = await stage.row(run.id)
    assert (row.outcome, row.ended_because, row.score) == (outcome, cause, score)
    assert took < 2.0
    assert (row.deliverable_digest is None) is (mode is StopMode.DISCARD)
    assert not stage.machine.sandboxes


@pytest.mark.parametrize("mode", MODES)
async def test_a_run_whose_command_has_not_started_is_cancelled(stage: Stage, mode: StopMode) -> None:
    run = await stage.submit(await stage.task(), await stage.agent())
    ctx = stage.context()
    attempt = await stage.claim(ctx)
    await stage.stop(run.id, mode)
    await stage.steps(ctx, attempt)
    row = await stage.row(run.id)
    assert (row.outcome, row.ended_because) == (Outcome.CANCELLED, EndedBecause.CANCELLED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("state", [AttemptState.ENDED, AttemptState.COLLECTED])
async def test_after_the_agents_end_only_discard_changes_something(
    stage: Stage, mode: StopMode, state: AttemptState
) -> None:
    run = await stage.submit(await stage.task(), await stage.agent())
    ctx = stage.context()
    attempt = await stage.steps(ctx, await stage.claim(ctx), state)
    await stage.stop(run.id, mode)
    await stage.steps(ctx, attempt)
    await stage.grade_all()
    row = await stage.row(run.id)
    assert row.outcome is (Outcome.CANCELLED if mode is StopMode.DISCARD else Outcome.GRADED)
    assert row.ended_because is EndedBecause.COMPLETED
    assert (await stage.attempts(run.id))[0].state is AttemptState.RELEASED
    async with stage.db.reading() as tx:
        states = {(g.state, g.cause) for g in await gradings.list_for_run(tx, run.id)}
    if mode is StopMode.DISCARD:
        assert states <= {(VerdictState.FAILED, "cancelled")}
        assert row.score is None


async def test_a_done_run_stays_as_it_is(stage: Stage) -> None:
    run = await stage.run(await stage.task(), await stage.agent())
    for mode in MODES:
        row = await stage.stop(run.id, mode)
        assert (row.outcome, row.revision) == (Outcome.GRADED, run.revision)
    with pytest.raises(NotFound):
        await stage.stop("run_unknown", StopMode.DISCARD)


@pytest.mark.fault(122)
async def test_many_stops_at_once_and_a_completion_leave_one_end(stage: Stage) -> None:
    task, agent = await stage.task(), await stage.agent(code=WRITE_RIGHT)
    for delay in (0.0, 0.02, 0.05, 0.1):
        run = await stage.submit(task, agent)
        work = asyncio.create_task(stage.work(stage.context(), run.id))
        await asyncio.sleep(delay)
        await asyncio.gather(*(stage.stop(run.id, m) for m in (*MODES, *MODES)))
        await work
        await stage.grade_all()
        row = await stage.row(run.id)
        assert row.phase is Phase.DONE
        ends = [e for e in await stage.events(run.id, "run.phase") if e.payload["phase"] == "done"]
        assert len(ends) == 1
        assert not stage.machine.sandboxes


async def test_only_ended_runs_are_deleted(stage: Stage) -> None:
    run = await stage.submit(await stage.task(), await stage.agent())
    ctx = stage.context()
    attempt = await stage.claim(ctx)
    while (attempt := await stage.steps(ctx, attempt, AttemptState.COLLECTED)).state is not AttemptState.COLLECTED:
        pass
    await stage.grade_all()
    with pytest.raises(Conflict):
        async with stage.db.transaction() as tx:
            await delete_run(tx, stage.project.id, run.id)
    step = STEPS[attempt.state]
    assert step is not None
    await step(ctx, attempt)
    async with stage.db.transaction() as tx:
        await regrade(tx, stage.project.id, run.id)
        with pytest.raises(NotFound):
            await delete_run(tx, "prj_other", run.id)
        await delete_run(tx, stage.project.id, run.id)
    with pytest.raises(NotFound):
        await stage.row(run.id)
