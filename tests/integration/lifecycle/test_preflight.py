"""An evaluation is tried out before it starts: models and judges asked, scaffolds run, what fails said by agent."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from service.domain.agents import AgentSpec
from service.domain.errors import Conflict
from service.domain.evaluations import EvaluationSpec, EvaluationState
from service.domain.grading_plans import PlanGrader, PlanSpec
from service.domain.operations import OperationState
from service.domain.run_states import Flag, Phase
from service.lifecycle.evaluations import starting
from service.lifecycle.evaluations.drafting import draw_up
from service.lifecycle.evaluations.sweeping import Memory, sweep
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.perform import perform
from service.lifecycle.operations.preflight.task import NAME
from service.lifecycle.own_side import OwnWay
from service.lifecycle.plans import make_plan
from service.lifecycle.queue import claim
from service.lifecycle.report import report
from service.models.scripted.scenario import Scenario
from service.store import agents, operations, runs, tasks
from service.store.evaluations import evaluations
from service.store.rows import OperationRow, RunFilter, RunRow
from service.store.rows_evaluations import EvaluationRow
from tests.integration.lifecycle.loops import Workshop
from tests.integration.lifecycle.stage import Stage, until
from tests.integration.lifecycle.test_takeover import DieAt, Died

ACTOR = "tok_lead"
READY = (
    "import pathlib; pathlib.Path('output').mkdir(exist_ok=True); pathlib.Path('output/ready.txt').write_text('ready')"
)
ONE_FILE = Scenario(name="one-file", answers=['<file name="ready.txt">\nready\n</file>'])
BROKEN = "import sys; print('no such option: --effrot', flush=True); sys.exit(2)"


class Lead:
    """Drafts, starts, and lets a worker and a grader work."""

    def __init__(self, stage: Stage, workshop: Workshop, folder: Path) -> None:
        self.stage, self.workshop = stage, workshop
        (folder / "service-token").write_text("of-our-own-processes\n")
        self.way = OwnWay(folder / "models.sock", folder / "service-token")

    def context(self, **changes: Any) -> OperationContext:
        return OperationContext(self.stage.db, self.stage.blobs, gateway=self.way, first_pause_s=0.01, **changes)

    async def begin(self, agents: Sequence[str], **fields: Any) -> tuple[EvaluationRow, OperationRow]:
        """Draft over two tasks and start; return it with the operation that checks it."""
        ids = [await self.stage.task(name=name) for name in ("sum", "more")]
        body = {"name": "week", "task_ids": ids, "agents": [{"agent": a} for a in agents], **fields}
        spec = EvaluationSpec.model_validate(body)
        async with self.stage.db.transaction() as tx:
            row = await draw_up(tx, self.stage.blobs, self.stage.project.id, spec, ACTOR)
        return await self.start(row.id)

    async def start(self, evaluation_id: str) -> tuple[EvaluationRow, OperationRow]:
        async with self.stage.db.transaction() as tx:
            await evaluations.turn(tx, evaluation_id)
            row = await evaluations.load(tx, evaluation_id)
            assert row is not None
            row = await starting.begin(tx, row, ACTOR, skip_preflight=False)
        assert row.state is EvaluationState.CHECKING
        assert row.preflight is not None
        return row, await self.operation(row.preflight["operation_id"])

    async def operation(self, operation_id: str) -> OperationRow:
        async with self.stage.db.reading() as tx:
            found = await operations.get(tx, self.stage.project.id, operation_id)
        assert found is not None
        return found

    async def row(self, evaluation_id: str) -> EvaluationRow:
        async with self.stage.db.reading() as tx:
            found = await evaluations.load(tx, evaluation_id)
        assert found is not None
        return found

    async def check(self, operation: OperationRow, **changes: Any) -> OperationRow:
        """Do the operation beside a worker; return it as it ended."""
        working = asyncio.create_task(self._work())
        try:
            async with asyncio.timeout(60):
                await perform(self.context(**changes), operation.id)
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working
        return await self.operation(operation.id)

    async def _work(self) -> None:
        ctx = self.workshop.context()
        while True:
            for attempt in await claim(ctx, self.stage.host, 1):
                await self.stage.steps(ctx, attempt)
            await self.stage.grade_all()
            await asyncio.sleep(0.02)

    async def runs(self, where: RunFilter | None = None) -> Sequence[RunRow]:
        where = where or RunFilter()
        async with self.stage.db.reading() as tx:
            return (await runs.list(tx, self.stage.project.id, where, limit=500)).items

    async def trials(self) -> Sequence[RunRow]:
        return await self.runs(RunFilter(flag=(Flag.PREFLIGHT.value,)))


@pytest.fixture
async def lead(stage: Stage, tmp_path: Path) -> AsyncIterator[Lead]:
    async with Workshop.open(stage, tmp_path, ONE_FILE) as workshop:
        yield Lead(stage, workshop, tmp_path)


async def test_all_well_starts_it_and_no_table_counts_the_trials(lead: Lead) -> None:
    both = [
        await lead.stage.agent("one", READY),
        await lead.workshop.agent("single_response", "one-file"),
        await lead.stage.agent("reference", kind="oracle"),
    ]
    row, operation = await lead.begin(both)
    ended = await lead.check(operation)
    assert ended.state is OperationState.SUCCEEDED, (ended.problem, ended.log)
    assert ended.result is not None
    assert (ended.result["started"], ended.result["ok"]) == (True, True), ended.result
    row = await lead.row(row.id)
    assert (row.state, row.total) == (EvaluationState.RUNNING, 6)
    assert row.preflight is not None
    assert row.preflight["agents"] == {agent: {"ok": True, "problems": []} for agent in both}
    assert row.preflight["at"].endswith("Z")
    trials = await lead.trials()
    assert sorted(run.agent_id for run in trials) == sorted(both)
    assert {run.task_name for run in trials} == {NAME}
    assert len(await lead.runs()) == 9
    async with lead.stage.db.reading() as tx:
        figures = await report(tx, lead.stage.project.id, RunFilter())
    assert figures.excluded == {"preflight:-": 3, "unfinished:-": 6}


async def test_a_wrong_model_id_stops_it_in_the_providers_own_words(lead: Lead) -> None:
    good = await lead.workshop.agent("single_response", "one-file")
    wrong = await lead.workshop.agent("single_response", "e404")
    row, operation = await lead.begin([good, wrong])
    ended = await lead.check(operation)
    assert ended.state is OperationState.SUCCEEDED, (ended.problem, ended.log)
    assert ended.result is not None
    assert ended.result["started"] is False
    row = await lead.row(row.id)
    assert (row.state, row.total) == (EvaluationState.DRAFT, 0)
    assert row.preflight is not None
    assert row.preflight["agents"][good] == {"ok": True, "problems": []}
    (said,) = row.preflight["agents"][wrong]["problems"]
    assert said["what"].startswith("model e404-")
    assert said["detail"].startswith("HTTP 404: ")
    assert "scripted" in said["detail"]
    # Its scaffold hangs on its model alone here; the other's was tried.
    assert [run.agent_id for run in await lead.trials()] == [good]
    async with lead.stage.db.reading() as tx:
        log = await evaluations.log(tx, row.id)
    assert log[-1].action == "preflight_failed"
    assert log[-1].detail["agents"] == [wrong]


async def test_a_scaffold_that_does_not_run_is_told_with_its_last_words(lead: Lead) -> None:
    broken = await lead.stage.agent("broken", BROKEN)
    row, operation = await lead.begin([broken, await lead.stage.agent("one", READY)])
    await lead.check(operation)
    row = await lead.row(row.id)
    assert row.state is EvaluationState.DRAFT
    assert row.preflight is not None
    (said,) = row.preflight["agents"][broken]["problems"]
    assert said["what"] == "run of broken@1 in base"
    assert "scaffold_error" in said["detail"]
    assert "no such option: --effrot" in said["detail"]


async def test_agents_that_share_a_scaffold_share_its_trial(lead: Lead) -> None:
    first = await lead.stage.agent("same", READY)
    async with lead.stage.db.transaction() as tx:
        spec = AgentSpec(scaffold="same@1", settings={"max_turns": 3})
        second = (await agents.create(tx, lead.stage.project.id, spec))[0].id
    row, operation = await lead.begin([first, second])
    await lead.check(operation)
    assert (await lead.row(row.id)).state is EvaluationState.RUNNING
    assert len(await lead.trials()) == 1


async def test_a_judge_that_does_not_answer_stops_it(lead: Lead) -> None:
    good, wrong = await lead.workshop.model("one-file"), await lead.workshop.model("e401")
    judges = [{"model": good}, {"model": wrong}]
    plan = PlanSpec(graders=[PlanGrader(method="llm_panel", settings={"judges": judges, "votes": 1})])
    async with lead.stage.db.transaction() as tx:
        await make_plan(tx, lead.stage.project.id, "panel", plan, ACTOR)
    row, operation = await lead.begin([await lead.stage.agent("one", READY)], plan="panel")
    ended = await lead.check(operation)
    assert ended.state is OperationState.SUCCEEDED, (ended.problem, ended.log)
    row = await lead.row(row.id)
    assert row.state is EvaluationState.DRAFT
    assert row.preflight is not None
    assert {judge["model"]: judge["ok"] for judge in row.preflight["judges"].values()} == {good: True, wrong: False}
    assert all(found["ok"] for found in row.preflight["agents"].values())


async def test_its_end_on_request_leaves_a_draft_and_nothing_at_work(lead: Lead) -> None:
    row, operation = await lead.begin([await lead.stage.agent("one", READY)])
    working = asyncio.create_task(perform(lead.context(), operation.id))

    async def tried() -> bool:
        return len(await lead.trials()) == 1  # no worker takes it

    await until(tried)
    async with lead.stage.db.transaction() as tx:
        await operations.request_cancel(tx, lead.stage.project.id, operation.id)
    await asyncio.wait_for(working, 30)
    assert (await lead.operation(operation.id)).state is OperationState.CANCELLED
    assert (await lead.row(row.id)).state is EvaluationState.DRAFT
    assert [run.phase for run in await lead.trials()] == [Phase.DONE]


async def test_a_start_after_a_crash_finds_its_runs(lead: Lead) -> None:
    row, operation = await lead.begin([await lead.stage.agent("one", READY)])
    with pytest.raises(Died):
        await lead.check(operation, crash=DieAt(None, "preflight.tried"), tries=1)
    assert (await lead.row(row.id)).state is EvaluationState.CHECKING
    (before,) = await lead.trials()
    ended = await lead.check(await lead.operation(operation.id))
    assert ended.state is OperationState.SUCCEEDED, ended.problem
    assert [run.id for run in await lead.trials()] == [before.id]
    row = await lead.row(row.id)
    assert (row.state, row.total) == (EvaluationState.RUNNING, 2)


async def test_runs_of_somebody_else_with_its_labels_are_none_of_its_own(lead: Lead) -> None:
    agent = await lead.stage.agent("one", READY)
    _, operation = await lead.begin([agent])
    foreign = await lead.stage.submit(
        await lead.stage.task(name="foreign"), agent, labels={"preflight": operation.id, "preflight_trial": "0"}
    )
    await lead.check(operation)
    (trial,) = await lead.trials()
    assert trial.id != foreign.id


async def test_an_operation_that_ended_unheard_makes_it_a_draft_again(lead: Lead) -> None:
    agent = await lead.stage.agent("one", READY)
    row, operation = await lead.begin([agent])
    other, going_on = await lead.begin([agent])
    async with lead.stage.db.transaction() as tx:
        await operations.request_cancel(tx, lead.stage.project.id, operation.id)  # nobody has begun it: it ends at once
    await sweep(lead.stage.db, Memory())
    found = await lead.row(row.id)
    assert found.state is EvaluationState.DRAFT
    assert found.preflight is not None
    assert found.preflight["ok"] is False
    assert (await lead.row(other.id)).state is EvaluationState.CHECKING
    assert going_on.state is OperationState.QUEUED


async def test_an_older_operation_does_not_decide_on_a_newer_start(lead: Lead) -> None:
    agent = await lead.stage.agent("broken", BROKEN)
    row, older = await lead.begin([agent])
    async with lead.stage.db.transaction() as tx:
        await evaluations.change(tx, row.id, state=EvaluationState.DRAFT)
    row, _ = await lead.start(row.id)
    ended = await lead.check(older)
    assert ended.state is OperationState.FAILED
    assert ended.problem is not None
    assert ended.problem["type"] == "evaluation_not_checking"
    assert (await lead.row(row.id)).state is EvaluationState.CHECKING
    assert await lead.trials() == []


async def test_only_one_task_of_its_name_in_each_environment(lead: Lead) -> None:
    agent = await lead.stage.agent("one", READY)
    for _ in range(2):
        await lead.check((await lead.begin([agent]))[1])
    assert len({run.task_id for run in await lead.trials()}) == 1
    async with lead.stage.db.reading() as tx:
        assert await tasks.get(tx, lead.stage.project.id, (await lead.trials())[0].task_id) is not None


async def test_a_draft_that_fits_no_more_is_told_and_stays_a_draft(lead: Lead, monkeypatch: pytest.MonkeyPatch) -> None:
    row, operation = await lead.begin([await lead.stage.agent("one", READY)])

    async def outdated(*_: Any) -> None:
        raise Conflict("evaluation_outdated", "a model is gone")

    monkeypatch.setattr(starting, "recall", outdated)
    ended = await lead.check(operation)
    assert ended.state is OperationState.FAILED
    assert ended.problem is not None
    assert ended.problem["type"] == "evaluation_outdated"
    row = await lead.row(row.id)
    assert row.state is EvaluationState.DRAFT
    assert row.preflight is not None
    assert row.preflight["notes"] == ["not started: evaluation_outdated: a model is gone"]
