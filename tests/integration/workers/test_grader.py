"""The grader process on DBOS (faults 111, 125)."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from service.domain.run_states import Outcome, Phase
from service.lifecycle.grade import GradeContext
from service.lifecycle.regrading import regrade
from service.store import gradings
from service.workers.engine import EngineConfig, Queue, job_engine
from service.workers.grader import grading_queue
from service.workers.jobs import JobsConfig, run_jobs
from tests.integration.lifecycle.stage import Stage, until


async def sealed(stage: Stage) -> str:
    run = await stage.submit(await stage.task(), await stage.agent())
    await stage.work(stage.context(), run.id)
    return run.id


async def test_sealed_runs_are_graded_until_told_to_stop(stage: Stage) -> None:
    run_id = await sealed(stage)
    stop = asyncio.Event()
    ctx = GradeContext(stage.db, stage.blobs)
    config = JobsConfig(scan_s=0.2, poll_s=0.1)
    grader = asyncio.create_task(run_jobs(stage.db, stage.notifications, [grading_queue(ctx)], config, stop))
    await until(lambda: stage.is_in(run_id, Phase.DONE))
    row = await stage.row(run_id)
    assert (row.outcome, row.score) == (Outcome.GRADED, 2.0)
    async with stage.db.transaction() as tx:
        await regrade(tx, stage.project.id, run_id)
    await until(lambda: stage.has_event(run_id, "verdict", 2))
    stop.set()
    await asyncio.wait_for(grader, 15)


@pytest.mark.fault(111, 125)
async def test_a_job_of_a_dead_process_is_queued_again_and_a_living_ones_is_not(stage: Stage) -> None:
    run_id = await sealed(stage)
    async with stage.db.reading() as tx:
        (grading,) = await gradings.list_for_run(tx, run_id)
    started = asyncio.Event()

    async def hang(_: str) -> None:
        started.set()
        await asyncio.sleep(3600)

    config = EngineConfig(poll_s=0.1, drain_s=0)
    async with job_engine(stage.db, [Queue("gradings", 2, hang)], config) as engine:
        assert await engine.ensure("gradings", [grading.id]) == 1
        await asyncio.wait_for(started.wait(), 15)
        assert await engine.ensure("gradings", [grading.id]) == 0
        assert await engine.ensure("gradings", [grading.id, grading.id]) == 0
    done = asyncio.Event()

    async def note(_: str) -> None:
        done.set()

    async with job_engine(stage.db, [Queue("gradings", 2, note)], replace(config, drain_s=5)) as engine:
        assert await engine.ensure("gradings", [grading.id]) == 1
        await asyncio.wait_for(done.wait(), 15)
        assert await engine.ensure("gradings", [grading.id]) in (0, 1)


async def test_a_full_queue_does_not_keep_another_waiting_and_each_keeps_its_bound(stage: Stage) -> None:
    busy, most, go = 0, 0, asyncio.Event()

    async def slow(_: str) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await go.wait()
        busy -= 1

    other = asyncio.Event()

    async def quick(_: str) -> None:
        other.set()

    config = EngineConfig(poll_s=0.1, drain_s=5)
    async with job_engine(stage.db, [Queue("slow", 2, slow), Queue("quick", 3, quick)], config) as engine:
        assert await engine.ensure("slow", [f"slow_{n}" for n in range(8)]) == 8

        async def two_are_busy() -> bool:
            return busy == 2

        await until(two_are_busy)
        assert await engine.ensure("quick", ["quick_1"]) == 1
        await asyncio.wait_for(other.wait(), 15)
        go.set()

        async def none_is_left() -> bool:
            return busy == 0

        await until(none_is_left)
    assert most == 2


async def test_what_has_ended_is_forgotten_and_its_key_can_be_queued_again(stage: Stage) -> None:
    done, go = 0, asyncio.Event()

    async def count(key: str) -> None:
        nonlocal done
        if key == "slow":
            await go.wait()
        done += 1

    async def ended(n: int) -> None:
        async def are() -> bool:
            return done == n

        await until(are)

    async with job_engine(stage.db, [Queue("gradings", 4, count)], EngineConfig(poll_s=0.1, drain_s=5)) as engine:
        assert await engine.ensure("gradings", ["one", "two", "slow"]) == 3
        await ended(2)
        assert await engine.forget(timedelta(hours=1)) == 0
        forgotten = 0

        async def both_are_forgotten() -> bool:
            nonlocal forgotten
            forgotten += await engine.forget(timedelta(0))
            return forgotten == 2

        await until(both_are_forgotten)
        assert await engine.ensure("gradings", ["slow"]) == 0  # living: it was not touched
        assert await engine.ensure("gradings", ["one"]) == 1
        await ended(3)
        assert await engine.ensure("gradings", ["one"]) in (0, 1)  # 0 while DBOS has not written its end
        go.set()
