"""A worker dies at each point; the next one goes on: nothing lost, nothing doubled (fault 111)."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import text

from service.domain.errors import FenceLost
from service.domain.run_states import AttemptState, EndedBecause, Outcome
from service.lifecycle.context import Context
from service.lifecycle.crash_points import NAMES, CrashPoints
from service.lifecycle.grade import GradeContext, grade
from service.lifecycle.provision import provision
from service.lifecycle.queue import claim
from service.store import attempts, grading_jobs
from service.store.rows import AttemptRow
from tests.integration.lifecycle.stage import RIGHT, Stage, until

LINES, GATES = 300, 3
CODE = f"""
import json, sys, time
for i in range({LINES}):
    print("line", i, flush=True)
    if i % 30 == 0: time.sleep(0.1)
sys.stdout.write("\\u20ac")
json.dump({RIGHT!r}, open("output/answers.json", "w"))
"""
EXPECTED = "".join(f"line {i}\n" for i in range(LINES)) + "\u20ac"


def gated(gates: Path) -> str:
    """Return the program with each of its first pieces waiting until the one before was read: else they may come as one."""
    waiting = f"""
import os
def until_read(piece):
    while piece <= {GATES} and not os.path.exists(f"{gates}/{{piece}}"): time.sleep(0.01)
"""
    return CODE.replace("for i in", f"{waiting}for i in", 1).replace("time.sleep(0.1)", "until_read(i // 30 + 1)")


class Died(BaseException):
    """In place of SIGKILL: nothing of ours may catch it."""


@dataclass(frozen=True)
class DieAt(CrashPoints):
    point: str = ""
    passes: list[str] = field(default_factory=list[str])
    after: int = 0
    gates: Path | None = None
    """Where each pass leaves a file with its number."""

    def reach(self, name: str) -> None:
        if name == self.point:
            self.passes.append(name)
            if self.gates is not None:
                (self.gates / str(len(self.passes))).touch()
            if len(self.passes) == self.after + 1:
                raise Died(name)


async def claim_and_step(stage: Stage, ctx: Context) -> None:
    for attempt in await claim(ctx, stage.host, 1):
        await stage.steps(ctx, attempt)


async def take_over(stage: Stage) -> AttemptRow:
    async with stage.db.transaction() as tx:
        (attempt,) = await attempts.takeover(tx, stage.host.id, stage.host.epoch)
    return attempt


WORKER_POINTS = [n for n in NAMES if not n.startswith(("submit", "grade"))]


@pytest.mark.fault(111)
@pytest.mark.parametrize(("point", "after"), [*((p, 0) for p in WORKER_POINTS), ("drive.streaming", 2)])
async def test_the_next_worker_goes_on(stage: Stage, point: str, after: int, tmp_path: Path) -> None:
    code = gated(tmp_path) if after else CODE
    run = await stage.submit(await stage.task(), await stage.agent(code=code))
    first = stage.context(crash=DieAt(point=point, after=after, gates=tmp_path))
    with pytest.raises(Died):
        await claim_and_step(stage, first)
    second = stage.context()
    attempt = await take_over(stage)
    await stage.steps(second, attempt)
    await stage.grade_all()
    row = await stage.row(run.id)
    assert (row.outcome, row.score, row.ended_because) == (Outcome.GRADED, 2.0, EndedBecause.COMPLETED)
    assert await stage.output(run.id) == EXPECTED
    assert len(await stage.events(run.id, "deliverable.sealed")) == 1
    assert len(await stage.events(run.id, "attempt.ended")) == 1
    (attempt,) = await stage.attempts(run.id)
    assert attempt.state is AttemptState.RELEASED
    left = int(point in ("provision.made", "provision.files_written"))  # nobody knew of it yet: the reaper's
    assert len(stage.machine.sandboxes) == left


@pytest.mark.fault(111)
async def test_an_old_worker_that_wakes_up_can_write_no_more(stage: Stage) -> None:
    await stage.submit(await stage.task(), await stage.agent(code="import time; time.sleep(0.3); print('x' * 100)"))
    zombie = stage.context(crash=DieAt(point="provision.started"))
    attempt = await stage.claim(zombie)
    with pytest.raises(Died):
        await stage.steps(zombie, attempt)
    await take_over(stage)
    with pytest.raises(FenceLost):
        await provision(stage.context(), attempt)


@pytest.mark.fault(111, 125)
@pytest.mark.parametrize("point", ["grade.started", "grade.decided"])
async def test_a_grading_survives_its_grader(stage: Stage, point: str) -> None:
    run = await stage.submit(await stage.task(), await stage.agent())
    await stage.work(stage.context(), run.id)
    async with stage.db.reading() as tx:
        (grading_id,) = await grading_jobs.open_ids(tx)
    with pytest.raises(Died):
        await grade(GradeContext(stage.db, stage.blobs, DieAt(point=point)), grading_id)
    await stage.grade_all()
    await grade(GradeContext(stage.db, stage.blobs), grading_id)
    row = await stage.row(run.id)
    assert (row.outcome, row.score) == (Outcome.GRADED, 2.0)
    assert len(await stage.events(run.id, "verdict")) == 1


WAITS = f"""
import json, os, time
print("there", flush=True)
while not os.path.exists("go"): time.sleep(0.02)
json.dump({RIGHT!r}, open("output/answers.json", "w"))
"""
_PASSED = """UPDATE attempts SET started_at = started_at - make_interval(secs => :by),
    deadline_at = deadline_at - make_interval(secs => :by) WHERE run_id = :id"""
_AWAY = "UPDATE runs SET updated_at = updated_at - make_interval(secs => :by) WHERE id = :id"


async def left_alone(stage: Stage, *, away_s: float, waited_s: float) -> str:
    """Return a run whose worker died, whose deadline passed 60 s ago and whose program says that it waited for us."""
    run = await stage.submit(await stage.task(), await stage.agent(code=WAITS))
    with pytest.raises(Died):
        await claim_and_step(stage, stage.context(crash=DieAt(point="drive.streaming")))
    (inside,) = stage.machine.sandboxes.values()
    assert inside.program is not None
    inside.program.waited_s = waited_s
    async with stage.db.transaction() as tx:
        await tx.execute(text(_PASSED), {"id": run.id, "by": run.limits.wall_clock_s + 60})
        await tx.execute(text(_AWAY), {"id": run.id, "by": away_s})
    return run.id


@pytest.mark.parametrize(
    ("waited_s", "moved_s"), [(80.0, 80.0), (1e6, 90.0)], ids=["as much", "no more than we were away"]
)
async def test_a_program_that_waited_for_us_gets_that_time_back(stage: Stage, waited_s: float, moved_s: float) -> None:
    run_id = await left_alone(stage, away_s=90, waited_s=waited_s)
    (before,) = await stage.attempts(run_id)
    going = asyncio.create_task(stage.steps(stage.context(), await take_over(stage)))
    await until(lambda: stage.has_event(run_id, "note"))
    (note,) = await stage.events(run_id, "note")
    assert moved_s <= note.payload["moved_s"] < moved_s + 20
    (after,) = await stage.attempts(run_id)
    assert before.deadline_at is not None
    assert after.deadline_at is not None
    assert moved_s - 1 < (after.deadline_at - before.deadline_at).total_seconds() < moved_s + 20
    (inside,) = stage.machine.sandboxes.values()
    (inside.root / "go").touch()
    await going
    assert (await stage.row(run_id)).ended_because is EndedBecause.COMPLETED


@pytest.mark.parametrize(
    ("away_s", "waited_s"), [(0.0, 1e6), (90.0, 0.0), (90.0, 20.0)], ids=["there", "none", "too little"]
)
async def test_others_are_late(stage: Stage, away_s: float, waited_s: float) -> None:
    run_id = await left_alone(stage, away_s=away_s, waited_s=waited_s)
    await stage.steps(stage.context(), await take_over(stage))
    assert (await stage.row(run_id)).ended_because is EndedBecause.WALL_CLOCK
    assert await stage.events(run_id, "note") == []
