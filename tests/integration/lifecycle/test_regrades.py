"""Regrades: an estimate that holds, a sample that is compared, and verdicts that change all at the end or not at all."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.grading_plans import Combine, PlanGrader, PlanSpec
from service.domain.models import ModelSpec, TokenUsage
from service.domain.regrades import RegradeRequest, RegradeState, RunStep
from service.domain.run_states import Flag
from service.domain.verdicts import VerdictState
from service.lifecycle import regrades as regrading
from service.lifecycle.plans import make_plan
from service.lifecycle.regrades import carry_on, draw_up
from service.lifecycle.reviewing import override
from service.models.pricing import cost_of
from service.store import gradings, models, projects, regrades, runs
from service.store.rows import RunFilter, RunRow
from service.store.rows_grading import RegradeRow
from service.store.tables_grading import evidence_documents
from tests.fixtures.judge_server import all_pass
from tests.integration.lifecycle.court import Court
from tests.integration.lifecycle.deliveries import deliver, external_agent, grade_due, judged_task
from tests.integration.lifecycle.stage import Stage

STRICT = "judge-2"
OTHER = {"upstream_id": STRICT, "prices": {"input_usd": "3", "output_usd": "15", "as_of": "2026-11-01"}}


def judge(body: dict[str, Any]) -> str:
    """The second judge lets nothing pass that says it is a draft, and says more."""
    said = json.loads(all_pass(body))
    if body["model"] == STRICT:
        said["overall_reasoning"] = "Looked at closely. " * 3
        if "a draft" in body["messages"][-1]["content"][0]["text"]:
            said["criteria_results"][0]["passed"] = said["rubric_passed"] = False
    return json.dumps(said)


def no_answer_on_the_second(body: dict[str, Any]) -> str:
    return "prose" if "work 1 " in json.dumps(body) else judge(body)


def tokens(body: dict[str, Any], text: str) -> tuple[int, int]:
    return len(json.dumps(body["messages"])) // 4, len(text) // 4


@pytest.fixture
async def court(stage: Stage, tmp_path: Path) -> AsyncIterator[Court]:
    async with Court.open(stage, tmp_path) as made:
        made.server.answer, made.server.tokens = judge, tokens
        await made.add_model("test/strict", **OTHER)
        yield made


async def plan(stage: Stage, name: str, model: str = "test/judge", **fields: Any) -> str:
    settings = {"judges": [{"model": model}], "images": "never"}
    spec = PlanSpec(graders=[PlanGrader(method="rubric_chain", settings=settings)], **fields)
    async with stage.db.transaction() as tx:
        row, _ = await make_plan(tx, stage.project.id, name, spec, "tester")
    return f"{row.name}@{row.version}"


async def delivered(court: Court, count: int) -> list[RunRow]:
    """Deliverables of two agents on tasks of 1 to 4 rubrics, graded under ``first@1``; every third is a draft."""
    stage = court.stage
    first = await plan(stage, "first")
    sizes = {"small": (1, 2), "large": (3, 4)}
    tasks = [await judged_task(stage, f"t{n}", n, facets={"size": s}) for s, some in sizes.items() for n in some]
    makers = [await external_agent(stage, name) for name in ("alpha", "beta")]
    for n in range(count):
        text = f"work {n} " + "of some length " * (10 + n % 7 * 20) + ("a draft" if n % 3 == 0 else "whole")
        await deliver(stage, tasks[n % 4], makers[n % 2], text, first)
    assert await grade_due(stage, court.context()) == count
    return await all_runs(stage)


async def all_runs(stage: Stage) -> list[RunRow]:
    async with stage.db.reading() as tx:
        found = await runs.list(tx, stage.project.id, RunFilter(flag=(Flag.EXTERNAL,)), "created_at", None, 500)
    return found.items


async def drawn(stage: Stage, **fields: Any) -> RegradeRow:
    asked = RegradeRequest.model_validate({"filter": {"flag": ["external"]}, **fields})
    async with stage.db.transaction() as tx:
        return await draw_up(tx, stage.blobs, stage.project.id, asked, "tester")


async def started(stage: Stage, regrade_id: str, scope: regrading.Scope) -> None:
    async with stage.db.transaction() as tx:
        await regrading.start(tx, stage.project.id, regrade_id, scope)
    await carry_on(stage.db, regrade_id)


async def now(stage: Stage, regrade_id: str) -> RegradeRow:
    async with stage.db.reading() as tx:
        row = await regrades.load(tx, regrade_id)
    assert row is not None
    return row


async def evidence_rows(stage: Stage) -> list[Any]:
    async with stage.db.reading() as tx:
        return sorted((await tx.execute(evidence_documents.select())).all())


async def spent(court: Court, regrade_id: str, model: str) -> tuple[int, Decimal]:
    """Calls of the regrade and what they cost, by the judges' own words."""
    spec = ModelSpec.model_validate(court.server.model(model, **OTHER))
    calls, usd = 0, Decimal(0)
    async with court.stage.db.reading() as tx:
        rows = [g for r in await all_runs(court.stage) for g in await gradings.list_for_run(tx, r.id)]
    for row in rows:
        for vote in await court.votes(row.id) if row.regrade_id == regrade_id else ():
            calls += vote.asks
            usd += cost_of(spec, TokenUsage.model_validate(vote.usage), {}).usd or Decimal(0)
    return calls, usd


def verdicts(found: list[RunRow]) -> dict[str, tuple[Any, ...]]:
    return {r.id: (r.plan, r.score, r.max_score, r.outcome) for r in found}


@pytest.mark.parametrize(("count", "sample"), [(12, 4), pytest.param(100, 30, marks=pytest.mark.slow)])
async def test_another_judge_changes_verdicts_alone_and_costs_what_was_estimated(
    court: Court, count: int, sample: int
) -> None:
    stage = court.stage
    before, extracted = await delivered(court, count), await evidence_rows(stage)
    assert {r.score == r.max_score for r in before} == {True}
    second = await plan(stage, "second", "test/strict")
    row = await drawn(stage, plan="second", sample={"n": sample, "stratify": "agent", "seed": 4}, primary=True)
    estimate = row.estimate
    assert (row.plan, row.state, estimate["runs"], estimate["gradings"]) == (second, "draft", count, count)
    assert estimate["evidence"] == {"documents": len(extracted), "to_extract": 0}
    assert (estimate["judge_calls"], estimate["basis"]) == (count * 5 // 2, "other_judge")
    assert estimate["sample"]["runs"] == sample

    await started(stage, row.id, "sample")
    assert await grade_due(stage, court.context()) == sample
    await carry_on(stage.db, row.id)
    sampled = await now(stage, row.id)
    assert sampled.state == RegradeState.SAMPLED
    seen = sampled.comparison
    assert seen is not None
    assert (seen["n"], seen["before_mean"], seen["flips_up"]["n"]) == (sample, 1.0, 0)
    async with stage.db.reading() as tx:
        chosen = set(await regrades.in_step(tx, row.id, RunStep.QUEUED, 500))
    assert Counter(r.agent_label for r in before if r.id in chosen) == {"alpha@1": sample // 2, "beta@1": sample // 2}
    drafts = {r.id for n, r in enumerate(before) if n % 3 == 0}
    assert set(seen["flips_down"]["run_ids"]) == chosen & drafts
    assert seen["difference"]["mean"] == pytest.approx(seen["after_mean"] - 1)
    assert verdicts(await all_runs(stage)) == verdicts(before), "nothing changes before the whole set is graded"

    await started(stage, row.id, "all")
    assert await grade_due(stage, court.context()) == count - sample
    assert verdicts(await all_runs(stage)) == verdicts(before)
    await carry_on(stage.db, row.id)
    done = await now(stage, row.id)
    assert done.state == RegradeState.DONE
    assert done.comparison is not None
    assert set(done.comparison["flips_down"]["run_ids"]) == drafts
    after = await all_runs(stage)
    assert {r.plan for r in after} == {second}
    assert {r.id for r in after if (r.score or 0) < (r.max_score or 0)} == drafts
    assert [r.deliverable_digest for r in after] == [r.deliverable_digest for r in before]
    assert await evidence_rows(stage) == extracted, "nothing was extracted again"
    calls, usd = await spent(court, row.id, "test/strict")
    assert calls == estimate["judge_calls"]
    assert usd > 0
    expected = Decimal(estimate["cost_usd"]["p50"])
    assert abs(usd - expected) / usd < Decimal("0.2"), (usd, expected)
    assert expected <= Decimal(estimate["cost_usd"]["p90"])


async def test_the_same_again_is_refused_unless_a_new_round_is_asked_for(court: Court) -> None:
    stage = court.stage
    await delivered(court, 4)
    again = await plan(stage, "again", "test/strict")
    first, twin = await drawn(stage, plan=again), await drawn(stage, plan=again)
    await started(stage, first.id, "all")
    with pytest.raises(Conflict, match=first.id):
        await drawn(stage, plan=again)
    with pytest.raises(Conflict, match=first.id):
        await started(stage, twin.id, "all")
    await grade_due(stage, court.context())
    await carry_on(stage.db, first.id)
    assert (await now(stage, first.id)).state == RegradeState.DONE
    with pytest.raises(Conflict, match="same plan"):
        await drawn(stage, plan=again)
    anew = await drawn(stage, plan=again, round=2)
    assert anew.estimate["basis"] == "measured", "this judge has been measured by now"
    assert {r.plan for r in await all_runs(stage)} == {"first@1"}, "it was not to become the runs' own"
    async with stage.db.transaction() as tx:
        with pytest.raises(Conflict, match="done"):
            await regrading.cancel(tx, stage.project.id, first.id)


async def test_a_cancelled_one_closes_its_gradings_and_leaves_the_runs_alone(court: Court) -> None:
    stage = court.stage
    before = await delivered(court, 5)
    row = await drawn(stage, plan=await plan(stage, "strict", "test/strict"), primary=True)
    await started(stage, row.id, "all")
    async with stage.db.transaction() as tx:
        await regrading.cancel(tx, stage.project.id, row.id)
    async with stage.db.reading() as tx:
        assert await regrades.open_ids(tx) == [row.id]
    await carry_on(stage.db, row.id)
    async with stage.db.reading() as tx:
        assert await regrades.open_ids(tx) == []
        at = await regrades.progress(tx, row.id)
        (last,) = [g for g in await gradings.list_for_run(tx, before[0].id) if g.regrade_id == row.id]
    assert (at.gradings, last.state, last.cause) == ({"failed": 5}, VerdictState.FAILED, "cancelled")
    assert verdicts(await all_runs(stage)) == verdicts(before)


async def test_two_jobs_on_one_regrade_make_every_grading_once(court: Court, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regrading, "_BATCH", 2)
    stage = court.stage
    await delivered(court, 8)
    row = await drawn(stage, plan=await plan(stage, "twice", "test/strict"))
    async with stage.db.transaction() as tx:
        await regrading.start(tx, stage.project.id, row.id, "all")
    await asyncio.gather(*(carry_on(stage.db, row.id) for _ in range(3)))
    async with stage.db.reading() as tx:
        at = await regrades.progress(tx, row.id)
    assert (at.gradings, at.steps) == ({"pending": 8}, {"queued": 8})


async def test_a_run_that_is_gone_is_left_out_and_a_failure_is_no_flip(court: Court) -> None:
    stage = court.stage
    gone, failing, *rest = await delivered(court, 4)
    row = await drawn(stage, plan=await plan(stage, "strict", "test/strict"), runs=None)
    async with stage.db.transaction() as tx:
        await runs.update(tx, gone.id, deliverable_digest=None)
        await regrading.start(tx, stage.project.id, row.id, "all")
    court.server.answer = no_answer_on_the_second
    await carry_on(stage.db, row.id)
    await grade_due(stage, court.context())
    await carry_on(stage.db, row.id)
    done = await now(stage, row.id)
    assert done.state == RegradeState.DONE
    assert done.comparison is not None
    assert (done.comparison["n"], done.comparison["left_out"]) == (len(rest), 2)
    async with stage.db.reading() as tx:
        at = await regrades.progress(tx, row.id)
        (broken,) = [g for g in await gradings.list_for_run(tx, failing.id) if g.regrade_id == row.id]
    assert (at.steps, broken.state, broken.score) == ({"left_out": 1, "queued": 3}, VerdictState.FAILED, None)


async def test_what_could_never_be_graded_is_refused_with_the_tasks_name(court: Court) -> None:
    stage = court.stage
    await delivered(court, 2)
    await plan(stage, "strict", "test/strict")
    agent = await external_agent(stage, "alpha")
    bare = await stage.task(name="bare", hidden=[], visible=[], graders=[])
    await deliver(stage, bare, agent, "something")
    with pytest.raises(Invalid, match="task bare") as caught:
        await drawn(stage, plan="strict")
    assert (caught.value.type, caught.value.fields["task"]) == ("unknown_hidden_asset", "bare")
    with pytest.raises(NotFound) as missing:
        await drawn(stage, plan="nobody")
    assert missing.value.type == "plan_not_found"
    async with stage.db.transaction() as tx:
        other = await projects.create(tx, "other")
        asked = RegradeRequest(plan="task", runs=[(await all_runs(stage))[0].id])
        with pytest.raises(NotFound, match="no runs of the project"):
            await draw_up(tx, stage.blobs, other.id, asked, "them")


async def test_an_override_counts_in_a_comparison_and_means_combine(court: Court) -> None:
    stage = court.stage
    first, *_ = await delivered(court, 2)
    settings = {"judges": [{"model": "test/strict"}], "images": "never"}
    twice = [
        PlanGrader(method="rubric_chain", settings=settings),
        PlanGrader(method="rubric_chain", settings={**settings, "show_task": False}),
    ]
    async with stage.db.transaction() as tx:
        await make_plan(tx, stage.project.id, "mean", PlanSpec(graders=twice, combine=Combine.MEAN), "tester")
    row = await drawn(stage, plan="mean", primary=True)
    await started(stage, row.id, "all")
    await grade_due(stage, court.context())
    async with stage.db.transaction() as tx:
        own = [g for g in await gradings.list_for_run(tx, first.id) if g.regrade_id == row.id]
        assert [g.score for g in own] == [0.0, 0.0]
        await override(tx, stage.project.id, own[0].id, "Ada", "It is no draft.", 1.0, 1.0)
    await carry_on(stage.db, row.id)
    now_is = (await all_runs(stage))[0]
    assert (now_is.score, now_is.max_score, now_is.plan) == (0.5, 1.0, "mean@1")
    assert Flag.OVERRIDDEN in now_is.flags
    done = await now(stage, row.id)
    assert done.comparison is not None
    assert done.comparison["after_mean"] == pytest.approx(0.75)


async def test_an_unknown_price_is_unknown_and_no_judge_costs_nothing(court: Court) -> None:
    stage = court.stage
    await delivered(court, 2)
    async with stage.db.transaction() as tx:
        entry = court.server.model("test/unpriced", prices=None)
        await models.create(tx, stage.project.id, ModelSpec.model_validate(entry), private=True)
    dear = await drawn(stage, plan=await plan(stage, "dear", "test/unpriced"))
    assert (dear.estimate["cost_usd"], dear.estimate["basis"]) == (None, "unknown")
    assert dear.estimate["judge_calls"] > 0
    async with stage.db.transaction() as tx:
        await make_plan(tx, stage.project.id, "free", PlanSpec(graders=[PlanGrader(method="integrity")]), "tester")
    free = await drawn(stage, plan="free")
    assert (free.estimate["cost_usd"], free.estimate["judge_calls"]) == ({"p50": "0.000000", "p90": "0.000000"}, 0)
    assert free.estimate["duration_s"] is None
