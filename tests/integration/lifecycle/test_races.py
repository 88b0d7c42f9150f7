"""A run under any order of claims, steps, deaths, stops and gradings ends exactly once (fault 122)."""

import asyncio
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from service.domain.errors import Conflict
from service.domain.run_states import TERMINAL_ATTEMPTS, EndedBecause, Outcome, Phase, StopMode
from service.lifecycle import STEPS
from service.lifecycle.context import Context
from service.lifecycle.failure import fail_attempt
from service.lifecycle.queue import claim
from service.lifecycle.regrading import regrade
from service.store import attempts
from service.store.rows import AttemptRow
from service.testing.memory_sandbox import MemoryHost
from tests.integration.lifecycle.stage import Stage

T = TypeVar("T")
FINAL = frozenset({Outcome.CANCELLED, Outcome.GRADED})


class RunRaces(RuleBasedStateMachine):
    url: ClassVar[str]
    folder: ClassVar[Path]

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.machine = MemoryHost()
        self.opened = Stage.open(self.url, Path(tempfile.mkdtemp(dir=self.folder)), self.machine)
        self.stage = self.do(self.opened.__aenter__())
        self.ctx: Context = self.stage.context()
        self.ended_as: Outcome | None = None

    def do(self, work: Awaitable[T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    @initialize(graders=st.booleans(), attempts=st.integers(1, 2))
    def submit(self, graders: bool, attempts: int) -> None:
        task = self.do(self.stage.task() if graders else self.stage.task(graders=[]))
        agent = self.do(self.stage.agent(argv=["/bin/sh", "-c", "echo x"]))
        self.run_id = self.do(self.stage.submit(task, agent, max_attempts=attempts)).id

    def live(self) -> AttemptRow | None:
        found = [a for a in self.do(self.stage.attempts(self.run_id)) if a.state not in TERMINAL_ATTEMPTS]
        assert len(found) <= 1
        return found[0] if found else None

    @rule()
    def claim(self) -> None:
        self.do(claim(self.ctx, self.stage.host, 1))

    @precondition(lambda self: self.live() is not None)
    @rule()
    def step(self) -> None:
        attempt = self.live()
        assert attempt is not None
        step = STEPS[attempt.state]
        assert step is not None
        self.do(step(self.ctx, attempt))

    @rule(mode=st.sampled_from(list(StopMode)))
    def stop(self, mode: StopMode) -> None:
        self.do(self.stage.stop(self.run_id, mode))

    @rule(modes=st.lists(st.sampled_from(list(StopMode)), min_size=2, max_size=4))
    def step_while_stopping(self, modes: list[StopMode]) -> None:
        async def both() -> None:
            live = [a for a in await self.stage.attempts(self.run_id) if a.state not in TERMINAL_ATTEMPTS]
            steps = [step(self.ctx, a) for a in live if (step := STEPS[a.state]) is not None]
            await asyncio.gather(*steps, *(self.stage.stop(self.run_id, m) for m in modes))

        self.do(both())

    @rule()
    def die_and_take_over(self) -> None:
        async def take() -> None:
            async with self.stage.db.transaction() as tx:
                await attempts.takeover(tx, self.stage.host.id, self.stage.host.epoch)

        self.do(take())
        self.ctx = self.stage.context()

    @precondition(lambda self: self.live() is not None)
    @rule()
    def infrastructure_fails(self) -> None:
        attempt = self.live()
        assert attempt is not None
        self.do(fail_attempt(self.ctx, attempt, EndedBecause.INFRA_ERROR, {"engine_error": "test"}))

    @rule()
    def grade(self) -> None:
        self.do(self.stage.grade_all())

    @rule()
    def regrade(self) -> None:
        async def again() -> None:
            try:
                async with self.stage.db.transaction() as tx:
                    await regrade(tx, self.stage.project.id, self.run_id)
            except Conflict:
                pass

        self.do(again())

    @invariant()
    def ends_once(self) -> None:
        if not hasattr(self, "run_id"):
            return
        row = self.do(self.stage.row(self.run_id))
        assert (row.phase is Phase.DONE) is (row.outcome is not None)
        if self.ended_as is not None:
            assert row.phase is Phase.DONE
            assert row.outcome is self.ended_as or self.ended_as not in FINAL
        self.ended_as = row.outcome
        assert (row.score is not None) <= (row.outcome is Outcome.GRADED)
        assert row.attempt <= row.max_attempts
        self.do(self.stage.events(self.run_id))

    def teardown(self) -> None:
        if hasattr(self, "run_id"):
            self.finish()
        for sandbox_id in list(self.machine.sandboxes):
            self.do(self.ctx.sandboxes.backend.remove(sandbox_id))
        self.do(self.opened.__aexit__(None, None, None))
        self.machine.close()
        self.loop.close()

    def finish(self) -> None:
        self.do(self.stage.work(self.ctx, self.run_id))
        while self.live() is not None:
            self.step()
            self.do(self.stage.work(self.ctx, self.run_id))
        self.do(self.stage.grade_all())
        assert self.do(self.stage.row(self.run_id)).phase is Phase.DONE
        assert not self.machine.sandboxes
        ends = [e for e in self.do(self.stage.events(self.run_id, "run.phase")) if e.payload["phase"] == "done"]
        outcomes = [e.payload["outcome"] for e in ends]
        assert len(set(outcomes)) == len(outcomes), outcomes
        sealed = self.do(self.stage.events(self.run_id, "deliverable.sealed"))
        assert len(sealed) <= 1


@pytest.mark.fault(122)
@pytest.mark.timeout(300)
def test_races(database_url: str, tmp_path: Path) -> None:
    machine = type("Machine", (RunRaces,), {"url": database_url, "folder": tmp_path})
    case = machine.TestCase
    case.settings = settings(
        max_examples=12, stateful_step_count=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], database=None,
        print_blob=True,
    )  # fmt: skip
    case().runTest()
