"""The worker of a host: claiming, failing, stopping, taking over, reaping (faults 97, 111, 128)."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from service.domain.errors import Conflict
from service.domain.run_states import AttemptState, EndedBecause, Flag, Outcome, Phase
from service.lifecycle.context import Context
from service.lifecycle.ports import Sandboxes
from service.sandboxes.contract import EngineError, SandboxError, SandboxRefused, SandboxSpec
from service.store import hosts
from service.testing.memory_sandbox import MemoryBackend, MemorySandbox
from service.workers.attempt_loop import Patience
from service.workers.heartbeat import Beating
from service.workers.host import HostConfig, run_host
from service.workers.reaper import Reaper
from service.workers.watchdog import Watching, look_once
from tests.integration.lifecycle.stage import WRITE_RIGHT, Stage, until


async def images() -> Sequence[str]:
    return ("base", "workbench")


def config(tmp_path: Path, **changes: Any) -> HostConfig:
    given: dict[str, Any] = {"slots": 2, "scan_s": 0.5, "lock_wait_s": 1.0, **changes}
    return HostConfig("host-1", lock_dir=tmp_path / "locks", environments=images,
                      patience=Patience(3, 0.01, 0.02), **given)  # fmt: skip


@asynccontextmanager
async def working(ctx: Context, given: HostConfig) -> AsyncGenerator[asyncio.Event]:
    stop = asyncio.Event()
    task = asyncio.create_task(run_host(ctx, given, stop))
    try:
        yield stop
    finally:
        stop.set()
        await asyncio.wait_for(task, 15)


async def released(stage: Stage, run_id: str) -> bool:
    return (await stage.attempts(run_id))[-1].state is AttemptState.RELEASED


@pytest.mark.fault(97)
async def test_runs_are_claimed_as_slots_become_free(stage: Stage, tmp_path: Path) -> None:
    task, agent = await stage.task(graders=[]), await stage.agent()
    async with working(stage.context(), config(tmp_path)):
        ids = [(await stage.submit(task, agent)).id for _ in range(5)]
        for run_id in ids:
            await until(lambda run_id=run_id: stage.is_in(run_id, Phase.DONE))
    rows = [await stage.row(i) for i in ids]
    assert {(r.outcome, r.ended_because) for r in rows} == {(Outcome.UNGRADED, EndedBecause.COMPLETED)}


@pytest.mark.fault(128)
async def test_a_signal_leaves_sandboxes_alone_and_the_next_process_goes_on(stage: Stage, tmp_path: Path) -> None:
    code = f"import time; print('one', flush=True); time.sleep(2); print('two', flush=True); {WRITE_RIGHT}"
    async with working(stage.context(), config(tmp_path)):
        run = await stage.submit(await stage.task(graders=[]), await stage.agent(code=code))
        await until(lambda: stage.has_event(run.id, "output"))
        stopping = time.monotonic()
    assert time.monotonic() - stopping < 10
    assert len(stage.machine.sandboxes) == 1
    async with working(stage.context(), config(tmp_path)):
        await until(lambda: released(stage, run.id))
    assert await stage.output(run.id) == "one\ntwo\n"
    (attempt,) = await stage.attempts(run.id)
    assert (attempt.state, attempt.ended_because) == (AttemptState.RELEASED, EndedBecause.COMPLETED)


async def test_a_host_id_belongs_to_one_process(stage: Stage, tmp_path: Path) -> None:
    async with working(stage.context(), config(tmp_path)):
        await asyncio.sleep(0.2)
        with pytest.raises(Conflict):
            await run_host(stage.context(), config(tmp_path, lock_wait_s=0.2), asyncio.Event())


class FaultyBackend(MemoryBackend):
    def __init__(self, stage: Stage, error: SandboxError, times: int) -> None:
        super().__init__(stage.machine)
        self.error, self.left = error, times

    async def make(self, spec: SandboxSpec) -> MemorySandbox:
        if self.left > 0:
            self.left -= 1
            raise self.error
        return await super().make(spec)


@pytest.mark.parametrize(
    ("error", "times", "outcome", "attempts"),
    [
        (EngineError("engine_hung", "create took 60 s"), 2, Outcome.GRADED, 3),
        (EngineError("engine_hung", "create took 60 s"), 9, Outcome.UNGRADED, 3),
        (SandboxRefused("image_refused", "no such image"), 9, Outcome.UNGRADED, 1),
    ],
)
async def test_provisioning_that_fails_is_retried_where_that_makes_sense(
    stage: Stage, error: SandboxError, times: int, outcome: Outcome, attempts: int
) -> None:
    ctx = stage.context(sandboxes=Sandboxes(FaultyBackend(stage, error, times)))
    run = await stage.submit(await stage.task(), await stage.agent())
    await stage.work(ctx, run.id)
    await stage.grade_all()
    row = await stage.row(run.id)
    assert (row.phase, row.outcome, row.attempt) == (Phase.DONE, outcome, attempts)
    assert (Flag.RETRIED in row.flags) is (attempts > 1)
    if outcome is Outcome.UNGRADED:
        assert (row.ended_because, row.score) == (EndedBecause.PROVISION_FAILED, None)
        assert error.detail in str([e.payload for e in await stage.events(run.id, "note")])


class BrokenCollection(MemoryBackend):
    async def attach(self, sandbox_id: str) -> MemorySandbox:
        sandbox = await super().attach(sandbox_id)

        async def collect(*_: object) -> object:
            raise OSError(5, "Input/output error")

        sandbox.collect = collect  # pyright: ignore[reportAttributeAccessIssue]
        return sandbox

    async def make(self, spec: SandboxSpec) -> MemorySandbox:
        return await self.attach((await super().make(spec)).id)


async def test_a_step_that_keeps_failing_ends_as_infra_error_and_never_as_a_score(stage: Stage, tmp_path: Path) -> None:
    ctx = stage.context(sandboxes=Sandboxes(BrokenCollection(stage.machine)))
    async with working(ctx, config(tmp_path)):
        run = await stage.submit(await stage.task(), await stage.agent(), max_attempts=2)
        await until(lambda: stage.is_in(run.id, Phase.DONE))
    row = await stage.row(run.id)
    assert (row.outcome, row.ended_because, row.score, row.attempt) == (
        Outcome.UNGRADED, EndedBecause.INFRA_ERROR, None, 2,
    )  # fmt: skip
    assert not stage.machine.sandboxes


async def test_the_reaper_takes_what_nobody_is_bound_to(stage: Stage) -> None:
    ctx = stage.context()
    await stage.submit(await stage.task(), await stage.agent(code="import time; time.sleep(60)"))
    bound = await stage.steps(ctx, await stage.claim(ctx), AttemptState.RUNNING)
    backend = MemoryBackend(stage.machine)
    orphan = await backend.make(SandboxSpec("sha256:" + "0" * 64))
    running = Reaper(stage.context(), stage.host.id, grace_s=0.2)
    assert await running.sweep() == []
    await asyncio.sleep(0.25)
    assert await running.sweep() == [orphan.id]
    left_by_the_dead = await backend.make(SandboxSpec("sha256:" + "0" * 64))
    assert await Reaper(stage.context(), stage.host.id).sweep(at_start=True) == [left_by_the_dead.id]
    assert list(stage.machine.sandboxes) == [bound.sandbox_id]


@pytest.mark.fault(111)
async def test_runs_of_a_lost_host_are_queued_again_and_its_worker_must_end(stage: Stage) -> None:
    ctx = stage.context()
    run = await stage.submit(await stage.task(), await stage.agent(code="import time; time.sleep(60)"))
    await stage.steps(ctx, await stage.claim(ctx), AttemptState.RUNNING)
    assert await look_once(stage.db, Watching(stale_s=3600, lost_s=3600), set()) == []
    await asyncio.sleep(0.05)
    assert await look_once(stage.db, Watching(stale_s=0.01, lost_s=0.01), set()) == [stage.host.id]
    row = await stage.row(run.id)
    assert (row.phase, row.flags) == (Phase.QUEUED, (Flag.RETRIED,))
    assert (await stage.attempts(run.id))[0].ended_because is EndedBecause.SANDBOX_LOST
    async with stage.db.transaction() as tx:
        assert not await hosts.beat(tx, stage.host.id, stage.host.epoch)


class Measured:
    async def read(self) -> dict[str, Any]:
        return {"memory_usable_bytes": 1 << 40, "cpus": 3}


async def test_a_drained_host_ends_when_its_last_run_is_released(stage: Stage, tmp_path: Path) -> None:
    given = config(tmp_path, gauge=Measured(), beating=Beating(every_s=0.05))
    task = asyncio.create_task(run_host(stage.context(), given, asyncio.Event()))
    slow = await stage.agent(code=f"import time; time.sleep(4); {WRITE_RIGHT}")
    run = await stage.submit(await stage.task(graders=[]), slow)
    await until(lambda: stage.is_in(run.id, Phase.RUNNING))
    async with stage.db.transaction() as tx:
        host = await hosts.change(tx, "host-1", cordoned=True, state="draining")
    assert host is not None
    assert host.facts == {"memory_usable_bytes": 1 << 40, "cpus": 3}
    waiting = await stage.submit(await stage.task(graders=[]), slow)
    await asyncio.sleep(0.3)
    assert not task.done()
    await asyncio.wait_for(task, 20)
    assert await released(stage, run.id)
    assert (await stage.row(waiting.id)).phase is Phase.QUEUED


async def test_an_uncordoned_host_takes_what_waits_at_once(stage: Stage, tmp_path: Path) -> None:
    async with working(stage.context(), config(tmp_path, scan_s=60, beating=Beating(every_s=0.05))):
        await until(lambda: _is_up(stage))
        async with stage.db.transaction() as tx:
            await hosts.change(tx, "host-1", cordoned=True)
        run = await stage.submit(await stage.task(graders=[]), await stage.agent())
        await asyncio.sleep(0.3)
        assert await stage.is_in(run.id, Phase.QUEUED)
        async with stage.db.transaction() as tx:
            await hosts.change(tx, "host-1", cordoned=False)
        await until(lambda: stage.is_in(run.id, Phase.DONE), 20)


async def _is_up(stage: Stage) -> bool:
    async with stage.db.reading() as tx:
        host = await hosts.get(tx, "host-1")
    return host is not None and host.epoch.startswith("wrk_")
