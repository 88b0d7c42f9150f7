"""Deadlines and resources in virtual time (faults 86, 119)."""

import asyncio
import time
from typing import Any, cast

import pytest

from service.domain.run_states import ContainerState
from service.lifecycle.clock import Clock
from service.lifecycle.context import Context, Timing
from service.lifecycle.watchers import Deadline, ResourceWatch, watch_container
from service.sandboxes.contract import ContainerReport, EngineError, ResourceSample, Sandbox


class FakeContext:
    timing = Timing()
    clock = Clock()


class FakeSandbox:
    def __init__(self, used: list[int | None], reports: list[ContainerReport | EngineError] | None = None) -> None:
        self.used = used
        self.reports = reports or []

    async def sample(self) -> ResourceSample | None:
        used = self.used.pop(0) if len(self.used) > 1 else self.used[0]
        return None if used is None else ResourceSample(1, 0.0, used, 0)

    async def inspect(self) -> ContainerReport:
        report = self.reports.pop(0)
        if isinstance(report, EngineError):
            raise report
        return report


class QuietWatch(ResourceWatch):
    recorded: int = 0

    async def _record(self, sample: ResourceSample) -> None:
        QuietWatch.recorded += 1


def watch(used: list[int | None], *, soft: bool) -> ResourceWatch:
    return QuietWatch(cast(Context, FakeContext()), cast(Any, None), cast(Sandbox, FakeSandbox(used)), 100, soft)


@pytest.mark.looptime
async def test_a_deadline_comes_after_its_seconds_and_only_nearer() -> None:
    loop = asyncio.get_running_loop()
    deadline = Deadline(3600)
    waiting = asyncio.create_task(deadline.wait())
    await asyncio.sleep(1000)
    deadline.shorten(5000)
    deadline.shorten(10)
    await waiting
    assert round(loop.time()) == 1010


@pytest.mark.fault(119)
@pytest.mark.looptime
@pytest.mark.parametrize("jump", [3600, -3600, 86_400 * 365, -1e9])
async def test_the_wall_clock_may_jump(jump: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    before = clock.now()
    deadline = Deadline(60)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    await deadline.wait()
    assert round(asyncio.get_running_loop().time()) == 60
    assert 0 <= (clock.now() - before).total_seconds() < 30


@pytest.mark.fault(86)
@pytest.mark.looptime
async def test_a_soft_quota_is_watched_and_a_hard_one_is_not() -> None:
    await watch([50, None, 100, 101], soft=True).run()
    assert round(asyncio.get_running_loop().time()) == 4
    hard = asyncio.create_task(watch([500], soft=False).run())
    await asyncio.sleep(600)
    assert not hard.done()
    assert QuietWatch.recorded >= 59
    hard.cancel()


@pytest.mark.fault(113)
@pytest.mark.looptime
async def test_an_engine_that_does_not_answer_says_nothing_about_the_container() -> None:
    running, dead = ContainerReport(ContainerState.RUNNING), ContainerReport(ContainerState.EXITED, 137)
    sandbox = FakeSandbox([None], [running, EngineError("engine_hung"), EngineError("engine_hung"), dead])
    report = await watch_container(cast(Context, FakeContext()), cast(Sandbox, sandbox))
    assert (report, round(asyncio.get_running_loop().time())) == (dead, round(4 * Timing().inspect_s))
