"""What the watchdog does for evaluations: stop rules hold an agent, budgets warn and hold, runs follow."""

from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import select, text

from service.domain.ids import new_id
from service.domain.run_states import EndedBecause, Outcome, Phase, StopMode
from service.domain.tasks import GraderSpec
from service.domain.verdicts import Verdict, VerdictState
from service.lifecycle.evaluations import control as decisions
from service.lifecycle.evaluations.control import Which
from service.lifecycle.evaluations.sweeping import Memory, sweep
from service.store import gradings, projects, runs, webhooks
from service.store.database import Database
from service.store.evaluations import control, evaluations, members
from service.store.secret_box import SecretBox
from service.store.tables_feeds import webhook_deliveries
from service.store.tables_models import model_requests
from tests.integration.store.evaluation_seeds import Scene, scene
from tests.integration.store.seeds import Seeds, add_run


async def ended(one: Scene, index: int, cause: EndedBecause = EndedBecause.COMPLETED, **columns: Any) -> None:
    """Let a run have ended, delivered something after ten minutes, and be done."""
    async with one.db.transaction() as tx:
        await runs.update(tx, one.runs[index], **({"wall_s": 600.0, "deliverable_files": 1} | columns))
        await runs.set_phase(tx, one.runs[index], Phase.DONE, outcome=Outcome.UNGRADED, ended_because=cause)


async def agent_hold(one: Scene, index: int = 0) -> Any:
    async with one.db.reading() as tx:
        return (await members.agents_of(tx, one.id))[index].hold


async def whole(one: Scene) -> Any:
    async with one.db.reading() as tx:
        return await evaluations.load(tx, one.id)


async def listen(one: Scene) -> None:
    async with one.db.transaction() as tx:
        project, url = one.seeds.project.id, "https://hooks.example.com/x"
        await webhooks.create(tx, SecretBox(bytes(32)), project, url, ["*"], labels={}, note="")


async def told(one: Scene) -> list[str]:
    async with one.db.reading() as tx:
        query = select(webhook_deliveries.c.type).where(webhook_deliveries.c.project_id == one.seeds.project.id)
        found = (await tx.execute(query.order_by(webhook_deliveries.c.id))).scalars().all()
    return [name for name in found if name.startswith("evaluation.")]


async def test_an_agent_whose_scaffold_fails_is_held_and_the_other_goes_on(db: Database, seeds: Seeds) -> None:
    one, memory = await scene(db, seeds, 8, with_models=(None, None)), Memory()
    await listen(one)
    for i in range(4):
        await ended(one, 2 * i, EndedBecause.SCAFFOLD_ERROR)
    await sweep(db, memory)
    assert await agent_hold(one) is None
    await ended(one, 8, EndedBecause.PROVISION_FAILED)
    await sweep(db, memory)
    hold = await agent_hold(one)
    assert (hold["reason"], hold["rule"], hold["bad"], hold["of"]) == ("stop_rule", "first", 5, 5)
    assert hold["causes"] == {"scaffold_error": 4, "provision_failed": 1}
    assert hold["run_ids"][0] == one.runs[8]
    assert await agent_hold(one, 1) is None
    assert await one.phases() == {"done": 5, "held": 3, "queued": 8}
    held = await one.run(10)
    assert held.hold is not None
    assert held.hold["detail"] == "5 of its first 5 ended runs look broken: 4 scaffold_error, 1 provision_failed"
    assert await told(one) == ["evaluation.held"]
    assert await one.log() == ["hold"]
    await sweep(db, memory)
    assert await one.log() == ["hold"]


async def test_after_a_release_only_what_ends_from_then_on_counts(db: Database, seeds: Seeds) -> None:
    one, memory = await scene(db, seeds, 12), Memory()
    for i in range(5):
        await ended(one, i, EndedBecause.SCAFFOLD_ERROR)
    await sweep(db, memory)
    assert await agent_hold(one) is not None
    async with db.transaction() as tx:
        await decisions.release(tx, await whole(one), "tok_1", Which(agent=one.agents[0]))
    await sweep(db, memory)
    assert await one.phases() == {"done": 5, "queued": 7}
    for i in range(5, 9):
        await ended(one, i, EndedBecause.SCAFFOLD_ERROR)
    await sweep(db, memory)
    assert await agent_hold(one) is None
    await ended(one, 9, EndedBecause.SCAFFOLD_ERROR)
    await sweep(db, memory)
    assert (await agent_hold(one))["bad"] == 5


@pytest.mark.parametrize(
    ("columns", "bad"),
    [
        ({"deliverable_files": 0, "wall_s": 12.0}, True),
        ({"deliverable_files": 0, "wall_s": 61.0}, False),
        ({"deliverable_files": 1, "wall_s": 12.0}, False),
    ],
)
async def test_nothing_delivered_in_no_time(db: Database, seeds: Seeds, columns: dict[str, Any], bad: bool) -> None:
    one = await scene(db, seeds, 6)
    for i in range(5):
        await ended(one, i, **columns)
    await sweep(db, Memory())
    assert (await agent_hold(one) is not None) == bad


async def request(one: Scene, run_id: str | None, n: int, **columns: Any) -> None:
    values = {
        "id": new_id("req"), "project_id": one.seeds.project.id, "run_id": run_id, "n": n, "state": "finished",
        "usage_known": True, "attempt": 1,
    }  # fmt: skip
    async with one.db.transaction() as tx:
        await tx.execute(model_requests.insert().values(values | columns))


@pytest.mark.parametrize(
    ("last", "bad"), [("provider_404", True), ("provider_429", False), ("provider_503", False), (None, False)]
)
async def test_the_providers_refusal_is_that_of_the_last_request(
    db: Database, seeds: Seeds, last: str | None, bad: bool
) -> None:
    one = await scene(db, seeds, 6)
    for i in range(5):
        await request(one, one.runs[i], 1, error="provider_400")
        await request(one, one.runs[i], 2, error=last)
        await ended(one, i)
    await sweep(db, Memory())
    assert (await agent_hold(one) is not None) == bad


async def test_what_people_ended_or_made_void_says_nothing_of_the_agent(db: Database, seeds: Seeds) -> None:
    one = await scene(db, seeds, 10)
    for i in range(5):
        await ended(one, i, EndedBecause.STOPPED, deliverable_files=0, wall_s=1.0)
    for i in range(5, 10):
        await ended(one, i, EndedBecause.SCAFFOLD_ERROR)
    async with db.transaction() as tx:
        await tx.execute(text("UPDATE runs SET outcome = 'invalidated' WHERE id = :id"), {"id": one.runs[9]})
    await sweep(db, Memory())
    assert await agent_hold(one) is None


async def spend(one: Scene, index: int, usd: str) -> None:
    async with one.db.transaction() as tx:
        await runs.update(tx, one.runs[index], cost_usd_all_attempts=Decimal(usd))


async def test_a_budget_is_told_of_at_80_percent_and_holds_at_100_until_it_is_raised(
    db: Database, seeds: Seeds
) -> None:
    one = await scene(db, seeds, 3, budget={"agents_usd": "10"})
    await listen(one)
    await spend(one, 0, "7.99")
    await sweep(db, Memory())
    assert ((await whole(one)).spend["agents_usd"], await told(one)) == ("7.99", [])
    await spend(one, 0, "8")
    for _ in range(2):
        await sweep(db, Memory())
    assert await told(one) == ["evaluation.budget"]
    await spend(one, 0, "8.5")
    await sweep(db, Memory())
    assert ((await whole(one)).spend["agents_usd"], await told(one)) == ("8.5", ["evaluation.budget"])
    await spend(one, 1, "1.5")
    for _ in range(2):
        await sweep(db, Memory())
    row = await whole(one)
    assert (row.hold["reason"], row.hold["detail"]) == ("budget", "10 of 10 USD are spent")
    assert await one.phases() == {"held": 3}
    assert await told(one) == ["evaluation.budget", "evaluation.budget", "evaluation.held"]
    await one.change(budget={"agents_usd": "20"})
    await sweep(db, Memory())
    assert (await whole(one)).hold is None
    assert await one.phases() == {"queued": 3}
    assert await one.log() == ["budget", "budget", "hold", "release"]


async def test_a_persons_hold_outlives_a_budget(db: Database, seeds: Seeds) -> None:
    one = await scene(db, seeds, 1, budget={"agents_usd": "1"})
    async with db.transaction() as tx:
        await control.hold(tx, one.id, control.EVALUATION_HELD, "for the night")
    await spend(one, 0, "2")
    await sweep(db, Memory())
    assert (await whole(one)).hold["reason"] == "evaluation_held"
    await one.change(budget={"agents_usd": None})
    await sweep(db, Memory())
    assert (await whole(one)).hold["reason"] == "evaluation_held"


async def test_at_limit_stop_also_stops_what_runs(db: Database, seeds: Seeds) -> None:
    one = await scene(db, seeds, 2, budget={"agents_usd": "1", "at_limit": "stop"})
    async with db.transaction() as tx:
        await runs.set_phase(tx, one.runs[0], Phase.RUNNING)
    await spend(one, 0, "1")
    await sweep(db, Memory())
    assert (await one.run(0)).stop_mode is StopMode.COLLECT
    assert (await one.run(1)).phase is Phase.HELD


async def test_the_last_dollars_of_an_evaluation_that_ended_are_summed(db: Database, seeds: Seeds) -> None:
    one, memory = await scene(db, seeds, 1), Memory()
    await sweep(db, memory)
    await spend(one, 0, "3")
    await ended(one, 0)
    memory = Memory()
    await sweep(db, memory)
    row = await whole(one)
    assert (row.state, row.spend["agents_usd"]) == ("done", "3")
    await sweep(db, Memory())
    assert (await whole(one)).revision == row.revision


async def a_grading(one: Scene) -> str:
    async with one.db.transaction() as tx:
        await runs.update(tx, one.runs[0], deliverable_digest="d" * 64)
        run = await runs.load(tx, one.runs[0])
        (row,) = await gradings.enqueue(tx, run, [GraderSpec(method="rubric_chain")], queues={"rubric_chain": "judges"})
    return row.id


async def test_judges_wait_for_their_budget_and_lose_nothing_by_it(db: Database, seeds: Seeds) -> None:
    one = await scene(db, seeds, 1, budget={"judges_usd": "1"})
    await request(one, None, 1, purpose="judge", subject=await a_grading(one), cost_usd=Decimal(2), attempt=None)
    await sweep(db, Memory())
    async with db.transaction() as tx:
        (row,) = await gradings.list_for_run(tx, one.runs[0])
        assert (row.state, row.cause, row.tries) == ("pending", "judges_budget", 0)
        assert row.not_before is not None
        await tx.execute(text("UPDATE gradings SET not_before = NULL"))
    async with db.transaction() as tx:
        assert await gradings.claim_start(tx, row.id) is None  # also where the watchdog has not seen it
    await one.change(budget={"judges_usd": "5"})
    await sweep(db, Memory())
    async with db.transaction() as tx:
        begun = await gradings.claim_start(tx, row.id)
    assert begun is not None
    assert (begun.state, begun.tries) == ("grading", 1)


async def test_what_a_judge_beside_took_after_the_end_is_summed_too(db: Database, seeds: Seeds) -> None:
    one = await scene(db, seeds, 1)
    await ended(one, 0)
    await sweep(db, Memory())
    before = await whole(one)
    assert (before.state, before.spend["judges_usd"]) == ("done", "0")
    grading_id = await a_grading(one)
    await request(one, None, 1, purpose="judge", subject=grading_id, cost_usd=Decimal("0.5"), attempt=None)
    async with db.transaction() as tx:
        await gradings.claim_start(tx, grading_id)
        await gradings.finish(tx, grading_id, Verdict(VerdictState.GRADED, 1, 1))
    assert "at" not in (await whole(one)).spend
    await sweep(db, Memory())
    row = await whole(one)
    assert row.spend["judges_usd"] == "0.5"
    assert row.spend["at"] > before.spend["at"]


async def test_a_projects_budget_holds_all_its_runs(db: Database, seeds: Seeds) -> None:
    one = await scene(db, seeds, 1)
    async with db.transaction() as tx:
        plain = await add_run(tx, seeds)
        await projects.change(tx, seeds.project.id, budget={"agents_usd": "1"})
    await listen(one)
    await spend(one, 0, "1")
    for _ in range(2):
        await sweep(db, Memory())
    async with db.reading() as tx:
        held = await runs.load(tx, plain.id)
    assert held.phase is Phase.HELD
    assert held.hold is not None
    assert held.hold["detail"] == "the project's budget: 1 of 1 USD are spent"
    assert await told(one) == ["evaluation.budget"]
    async with db.transaction() as tx:
        await projects.change(tx, seeds.project.id, budget=None)
    await sweep(db, Memory())
    async with db.reading() as tx:
        assert (await runs.load(tx, plain.id)).phase is Phase.QUEUED
