"""The first step of grading: made once, said once per run, and never worth a verdict."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from service.domain.integrity import IntegrityReport, ReportState
from service.domain.limits import Limits
from service.domain.run_states import Outcome
from service.domain.verdicts import Verdict
from service.graders.contract import GradingInput
from service.graders.exact.grader import ExactGrader
from service.lifecycle import integrity as step
from service.lifecycle.grade import GradeContext, grade
from service.lifecycle.integrity import ReportContext, make_queued
from service.lifecycle.regrading import regrade
from service.sandboxes.contract import EngineError, Sandbox, SandboxRefused
from service.store import grading_jobs, integrity
from service.store.rows import IntegrityRow, RunRow
from service.workers.integrity import integrity_queue
from service.workers.jobs import JobsConfig, run_jobs
from tests.integration.lifecycle.stage import WRITE_RIGHT, Stage, until

TEXT = "open('output/a.md', 'w').write('# Report'); open('output/b.txt', 'w').close(); import os; os.symlink('a', 'output/l')"


class NoRoom:
    """Where a room should be had."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked = 0

    @asynccontextmanager
    async def open(
        self, environment: str, limits: Limits, *, in_memory: bool = False, runs_code: bool = False, **_: Any
    ) -> AsyncGenerator[Sandbox]:
        self.asked += 1
        if self.error is None:
            await asyncio.sleep(3600)
        else:
            raise self.error
        yield None  # pyright: ignore[reportReturnType] - never reached


async def _sealed(stage: Stage, code: str, **task: object) -> RunRow:
    run = await stage.submit(await stage.task(**task), await stage.agent(code=code))
    await stage.work(stage.context(), run.id)
    return await stage.row(run.id)


def _graders(*ids: str) -> list[dict[str, Any]]:
    """One grader per answer."""
    expected = {"hidden": "answers.json"}
    return [{"method": "exact", "settings": {"expected": expected, "answers": [{"id": i}]}} for i in ids]


async def _report(stage: Stage, run: RunRow) -> IntegrityRow | None:
    assert run.deliverable_digest is not None
    async with stage.db.reading() as tx:
        return await integrity.find(tx, run.project_id, run.deliverable_digest)


async def _grade(stage: Stage, rooms: NoRoom | None = None) -> None:
    async with stage.db.reading() as tx:
        ids = await grading_jobs.open_ids(tx)
    ctx = GradeContext(stage.db, stage.blobs, first_pause_s=0.01, rooms=rooms)
    await asyncio.gather(*(grade(ctx, grading_id) for grading_id in ids))


async def test_a_graded_run_has_a_report_before_its_verdict(stage: Stage) -> None:
    run = await _sealed(stage, TEXT)
    assert run.deliverable_problems == 1
    await _grade(stage)
    run = await stage.row(run.id)
    assert (run.outcome, run.deliverable_problems) == (Outcome.GRADED, 2)
    types = [e.type for e in await stage.events(run.id, "deliverable.checked", "verdict")]
    assert types == ["deliverable.checked", "verdict"]
    row = await _report(stage, run)
    assert row is not None
    assert row.report is not None
    assert [(f.path, f.opens) for f in row.report.files] == [("output/a.md", True), ("output/b.txt", False)]


async def test_a_grader_is_given_the_report(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[IntegrityReport | None] = []
    real = ExactGrader.grade

    async def spy(self: ExactGrader, of: GradingInput) -> Verdict:
        given.append(of.integrity)
        return await real(self, of)

    monkeypatch.setattr(ExactGrader, "grade", spy)
    await _sealed(stage, TEXT)
    await _grade(stage)
    assert [r.problems if r else None for r in given] == [1]


async def test_a_second_round_and_equal_deliverables_use_the_report_that_is_there(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0
    real = step.make_report

    async def count(*given: Any) -> IntegrityReport:
        nonlocal made
        made += 1
        return await real(*given)

    monkeypatch.setattr(step, "make_report", count)
    first = await _sealed(stage, TEXT, graders=_graders("total", "name"))
    await _grade(stage)
    second = await _sealed(stage, TEXT, graders=_graders("total"))
    await _grade(stage)
    async with stage.db.transaction() as tx:
        await regrade(tx, first.project_id, first.id)
    await _grade(stage)
    assert made == 1
    for run in (first, second):
        assert (await stage.row(run.id)).deliverable_problems == 2
        assert await stage.has_event(run.id, "deliverable.checked")
        assert len(await stage.events(run.id, "deliverable.checked")) == 1


@pytest.mark.parametrize(
    ("rooms", "cause"),
    [
        (None, "no_rooms"),
        (NoRoom(EngineError("engine_error", "away")), "room_failed"),
        (NoRoom(SandboxRefused("unknown_image", "no documents")), "room_failed"),
        (NoRoom(ZeroDivisionError("ours")), "checker_error"),
        (NoRoom(), "took_too_long"),
    ],
    ids=["no engine", "engine away", "no image", "bug", "late"],
)
async def test_a_report_that_cannot_be_made_changes_no_verdict(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, rooms: NoRoom | None, cause: str
) -> None:
    monkeypatch.setattr(step, "PATIENCE_S", 0.3)
    run = await _sealed(stage, WRITE_RIGHT)
    await _grade(stage, rooms)
    graded = await stage.row(run.id)
    assert (graded.outcome, graded.score, graded.deliverable_problems) == (Outcome.GRADED, 2.0, 0)
    row = await _report(stage, graded)
    assert row is not None
    assert (row.state, row.cause, row.report) == (ReportState.UNAVAILABLE, cause, None)
    assert await stage.events(run.id, "deliverable.checked") == []


async def test_only_a_new_round_tries_again(stage: Stage) -> None:
    rooms = NoRoom(EngineError("engine_error", "away"))
    run = await _sealed(stage, WRITE_RIGHT, graders=_graders("total", "name"))
    await _grade(stage, rooms)
    assert rooms.asked == 1
    async with stage.db.transaction() as tx:
        await regrade(tx, run.project_id, run.id)
    await _grade(stage, rooms)
    assert rooms.asked == 2


async def test_a_new_version_of_the_checker_makes_a_report_of_its_own(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await _sealed(stage, TEXT)
    await _grade(stage)
    monkeypatch.setattr(integrity, "VERSION", "next")
    old = await _report(stage, run)
    async with stage.db.transaction() as tx:
        await regrade(tx, run.project_id, run.id)
    shown = await _report(stage, run)
    await _grade(stage)
    new = await _report(stage, run)
    assert old is not None
    assert new is not None
    assert (old.version, shown, new.version, new.state) == ("1", old, "next", ReportState.READY)
    assert len(await stage.events(run.id, "deliverable.checked")) == 2


async def test_what_kills_its_maker_is_given_up(stage: Stage) -> None:
    run = await _sealed(stage, TEXT)
    row = await _report(stage, run)
    assert row is not None
    async with stage.db.transaction() as tx:
        for _ in range(step.MAX_TRIES):
            await integrity.start(tx, row.id)
    await _grade(stage)
    row = await _report(stage, run)
    assert row is not None
    assert (row.state, row.cause) == (ReportState.UNAVAILABLE, "checker_crashed")


async def test_a_run_that_nothing_grades_has_a_job_make_its_report(stage: Stage) -> None:
    run = await _sealed(stage, TEXT, graders=[])
    assert run.outcome is Outcome.UNGRADED
    ctx = ReportContext(stage.db, stage.blobs, None)
    stop = asyncio.Event()
    config = JobsConfig(scan_s=0.2, poll_s=0.1)
    jobs = asyncio.create_task(run_jobs(stage.db, stage.notifications, [integrity_queue(ctx)], config, stop))
    await until(lambda: stage.has_event(run.id, "deliverable.checked"))
    stop.set()
    await asyncio.wait_for(jobs, 15)
    assert (await stage.row(run.id)).deliverable_problems == 2
    async with stage.db.reading() as tx:
        assert await integrity.open_ids(tx) == []
    again = await _sealed(stage, TEXT, graders=[])
    assert (await stage.row(again.id)).deliverable_problems == 2
    async with stage.db.reading() as tx:
        assert await integrity.open_ids(tx) == []


@pytest.mark.fault(125)
async def test_a_job_delivered_twice_makes_one_report(stage: Stage) -> None:
    run = await _sealed(stage, TEXT, graders=[])
    row = await _report(stage, run)
    assert row is not None
    assert row.queued
    ctx = ReportContext(stage.db, stage.blobs, None)
    await asyncio.gather(*(make_queued(ctx, row.id) for _ in range(3)))
    await make_queued(ctx, "itg_gone")
    assert len(await stage.events(run.id, "deliverable.checked")) == 1
