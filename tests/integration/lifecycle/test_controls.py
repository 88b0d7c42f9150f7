"""Altered-work controls of runs that a stage made: which there are, that they are made once, what the figures say."""

from dataclasses import replace
from typing import Any

import pytest

from service.domain.controls import ControlKind, ControlsSpec
from service.domain.grading_plans import PlanGrader, PlanSpec
from service.domain.run_states import Flag
from service.lifecycle.controls.figures import KindFigures, figures, seen
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.perform import perform
from service.lifecycle.plans import make_plan
from service.lifecycle.report import report
from service.store import operations, runs
from service.store.rows import OperationRow, RunFilter, RunRow
from tests.integration.lifecycle.stage import ANSWERS, Stage

WRITE = "import json; json.dump({values!r}, open('output/answers.json', 'w'))"
ALL = list(ControlKind)


async def originals(stage: Stage) -> tuple[RunRow, RunRow]:
    """A strong run of a task in category ``sums``, and a strong one of another task in it; a weak run of the first."""
    strong, weak = await stage.agent("strong"), await stage.agent("weak", WRITE.replace("{values!r}", "{'total': 1}"))
    other_code = WRITE.replace("{values!r}", "{'total': 7, 'name': 'Zug'}")
    task = await stage.task(facets={"category": "sums"})
    other = await stage.task(name="other", facets={"category": "sums"})
    first = await stage.run(task, strong)
    await stage.run(task, weak)
    elsewhere = await stage.run(other, await stage.agent("elsewhere", other_code))
    await stage.run(await stage.task(name="far", facets={"category": "prose"}), strong)
    return first, elsewhere


async def controls(stage: Stage, *of: str, **fields: Any) -> tuple[OperationRow, ControlsSpec]:
    spec = ControlsSpec.model_validate({"kinds": ["quarter", "other_task", "empty"], **fields, "originals": list(of)})
    async with stage.db.transaction() as tx:
        made = await operations.create(tx, stage.project.id, "controls", spec.model_dump(mode="json"))
    await perform(OperationContext(stage.db, stage.blobs, first_pause_s=0.01), made.id)
    async with stage.db.reading() as tx:
        row = await operations.get(tx, stage.project.id, made.id)
    assert row is not None
    return row, spec


async def figures_of(stage: Stage, spec: ControlsSpec) -> dict[ControlKind, KindFigures]:
    async with stage.db.reading() as tx:
        at = await seen(tx, stage.project.id, spec)
    return {f.kind: f for f in figures(spec, at)}


async def flagged(stage: Stage) -> list[RunRow]:
    async with stage.db.reading() as tx:
        return (await runs.list(tx, stage.project.id, RunFilter(flag=(Flag.CONTROL,)), sort="created_at")).items


async def test_each_kind_is_made_sealed_and_graded(stage: Stage) -> None:
    first, elsewhere = await originals(stage)
    operation, spec = await controls(stage, first.id, kinds=ALL, weaker="weak@1")
    assert (operation.state, operation.result) == ("succeeded", {"kinds": {kind: {"made": 1} for kind in ALL}})
    before = await figures_of(stage, spec)
    assert {f.excluded["unfinished"] for f in before.values()} == {1}
    assert {f.originals.acceptance for f in before.values()} == {None}
    await stage.grade_all()
    found = {run.labels["control"]: run for run in await flagged(stage)}
    assert {kind: (run.agent_label, run.labels["of"], run.task_id, run.outcome) for kind, run in found.items()} == {
        kind: (f"control/{kind}", first.id, first.task_id, "graded") for kind in ALL
    }
    assert {Flag.CONTROL, Flag.EXTERNAL} <= set(found["quarter"].flags)
    assert found["other_task"].deliverable_digest == elsewhere.deliverable_digest
    assert found["other_task"].labels["control_how"] == f"deliverable of {elsewhere.id}"
    assert found["quarter"].labels["control_how"] == "1 texts cut to a quarter, 0 of 0 other files kept"
    assert (found["empty"].deliverable_files, found["weaker"].deliverable_files) == (0, 1)
    said = await figures_of(stage, spec)
    for kind in ALL:
        one = said[kind]
        assert (one.controls, one.pairs, one.excluded) == (1, 1, {})
        assert (one.originals.acceptance, one.altered.acceptance, one.difference.mean) == (1.0, 0.0, -1.0)
    assert (said[ControlKind.WEAKER].altered.mean_fraction, said[ControlKind.EMPTY].originals.n) == (0.0, 1)


async def test_a_control_is_made_once_and_another_seed_is_another(stage: Stage) -> None:
    first, _ = await originals(stage)
    await controls(stage, first.id)
    again, spec = await controls(stage, first.id)
    assert again.result == {"kinds": {kind: {"found": 1} for kind in ("quarter", "other_task", "empty")}}
    assert len(await flagged(stage)) == 3
    await controls(stage, first.id, seed=8)
    assert len(await flagged(stage)) == 6
    assert {f.controls for f in (await figures_of(stage, spec)).values()} == {1}


async def test_labels_of_anybody_make_no_control(stage: Stage) -> None:
    first, _ = await originals(stage)
    labels = {"control": "empty", "of": first.id, "control_seed": "0"}
    await stage.run(first.task_id, first.agent_id, labels=labels)
    operation, _ = await controls(stage, first.id, kinds=["empty"])
    assert operation.result == {"kinds": {"empty": {"made": 1}}}


async def test_what_cannot_be_made_is_counted_by_reason(stage: Stage) -> None:
    first, elsewhere = await originals(stage)
    plain = await stage.run(await stage.task(name="plain"), first.agent_id)
    await controls(stage, first.id, kinds=["empty"])
    (control,) = await flagged(stage)
    operation, _ = await controls(
        stage, plain.id, control.id, elsewhere.id, "run_0", kinds=["other_task", "weaker"], weaker="weak@1"
    )
    assert operation.result == {
        "kinds": {
            "other_task": {"is_a_control": 1, "made": 1, "no_category": 1, "run_not_found": 1},
            "weaker": {"is_a_control": 1, "no_weaker_run": 2, "run_not_found": 1},
        }
    }


async def test_a_plan_grades_originals_and_controls_without_becoming_the_originals_own(stage: Stage) -> None:
    first, _ = await originals(stage)
    settings = {"answers": [ANSWERS[0]]}
    async with stage.db.transaction() as tx:
        plan = PlanSpec(graders=[PlanGrader(method="exact", settings=settings)])
        await make_plan(tx, stage.project.id, "one-answer", plan, "tok")
    operation, spec = await controls(stage, first.id, kinds=["quarter"], plan="one-answer@1")
    assert operation.result == {"kinds": {"quarter": {"made": 1}}}
    await stage.grade_all()
    (control,) = await flagged(stage)
    assert (control.plan, control.max_score, (await stage.row(first.id)).plan) == ("one-answer@1", 1.0, "task@1")
    said = (await figures_of(stage, spec))[ControlKind.QUARTER]
    assert (said.pairs, said.originals.accepted, said.altered.accepted) == (1, 1, 0)
    wide, default = await controls(stage, first.id, kinds=["quarter"])
    assert wide.result == {"kinds": {"quarter": {"found": 1}}}
    await stage.grade_all()
    assert (await figures_of(stage, default))[ControlKind.QUARTER].pairs == 1


async def test_reports_leave_controls_out_and_say_so(stage: Stage) -> None:
    first, _ = await originals(stage)
    await controls(stage, first.id)
    await stage.grade_all()
    async with stage.db.reading() as tx:
        plain = await report(tx, stage.project.id, RunFilter(task_id=(first.task_id,)))
        asked = await report(tx, stage.project.id, RunFilter(task_id=(first.task_id,), flag=(Flag.CONTROL,)))
    assert (plain.n, plain.graded, plain.passed) == (5, 2, 1)
    assert plain.excluded == {"control:empty": 1, "control:other_task": 1, "control:quarter": 1}
    assert (asked.n, asked.graded, asked.passed) == (3, 3, 0)


async def test_a_start_after_a_crash_goes_on(stage: Stage) -> None:
    """The first start dies between two controls: nothing is made twice, and the counts say what was there."""
    first, elsewhere = await originals(stage)
    spec = ControlsSpec(kinds=[ControlKind.EMPTY, ControlKind.QUARTER], originals=[first.id, elsewhere.id])
    async with stage.db.transaction() as tx:
        made = await operations.create(tx, stage.project.id, "controls", spec.model_dump(mode="json"))

    class Dies:
        left = 3

        def reach(self, name: str) -> None:
            Dies.left -= name == "controls.made"
            if Dies.left == 0:
                raise KeyboardInterrupt

    ctx = OperationContext(stage.db, stage.blobs, first_pause_s=0.01)
    with pytest.raises(KeyboardInterrupt):
        await perform(replace(ctx, crash=Dies()), made.id)
    assert len(await flagged(stage)) == 3
    await perform(ctx, made.id)
    async with stage.db.reading() as tx:
        row = await operations.get(tx, stage.project.id, made.id)
    assert row is not None
    assert row.result == {"kinds": {"empty": {"found": 2}, "quarter": {"found": 1, "made": 1}}}
    assert len(await flagged(stage)) == 4
