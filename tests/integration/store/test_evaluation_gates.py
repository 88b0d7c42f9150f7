"""Claims heed what an evaluation allows: limits are never exceeded, holds and budgets let nothing begin."""

import asyncio
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from service.domain.policies import RunBudget
from service.domain.run_states import AttemptState, EndedBecause, Outcome, Phase
from service.store import attempts, projects, queue_places, runs
from service.store.database import Database
from service.store.evaluations import control
from service.store.rows import AttemptRow, HostRow
from tests.integration.store.evaluation_seeds import Scene, scene
from tests.integration.store.seeds import Seeds, add_host, add_run


async def claim(db: Database, host: HostRow, slots: int = 9) -> list[AttemptRow]:
    async with db.transaction() as tx:
        return await attempts.claim(tx, host, slots)


async def new_host(db: Database, name: str = "h1", slots: int = 50) -> HostRow:
    async with db.transaction() as tx:
        return await add_host(tx, name, slots=slots)


async def end(db: Database, attempt: AttemptRow, usd: str | None = None) -> None:
    async with db.transaction() as tx:
        if usd is not None:
            await runs.update(tx, attempt.run_id, cost_usd_all_attempts=Decimal(usd))
        attempt = await attempts.advance(tx, attempt, AttemptState.ENDED, ended_because=EndedBecause.COMPLETED)
        await attempts.advance(tx, attempt, AttemptState.COLLECTED)
        await runs.set_phase(tx, attempt.run_id, Phase.DONE, outcome=Outcome.UNGRADED)


async def owners(db: Database, taken: list[AttemptRow]) -> Counter[str]:
    async with db.reading() as tx:
        return Counter([(await runs.load(tx, a.run_id)).agent_id for a in taken])


async def test_without_limits_an_evaluations_runs_are_claimed_as_any_in_their_order(db: Database, seeds: Seeds) -> None:
    one, host = await scene(db, seeds, with_models=(None, None)), await new_host(db)
    assert [a.run_id for a in await claim(db, host, 4)] == one.runs[:4]


async def test_concurrent_claims_never_exceed_a_limit(db: Database, seeds: Seeds) -> None:
    one = await scene(db, seeds, 20, with_models=(None, None), concurrency={"total": 5, "per_agent": 3})
    fleet = [await new_host(db, f"h{i}") for i in range(8)]
    for _ in range(3):
        rounds = await asyncio.gather(*(claim(db, host, 4) for host in fleet))
        taken = [a for found in rounds for a in found]
        by_agent = await owners(db, taken)
        assert len(taken) == 5
        assert max(by_agent.values()) <= 3
        assert (await one.phases())[Phase.PROVISIONING] == 5
        await asyncio.gather(*(end(db, a) for a in taken))
    assert (await one.phases())["done"] == 15


async def test_models_and_providers_are_limited_over_their_agents(db: Database, seeds: Seeds) -> None:
    names = ("acme/a", "acme/a", "acme/b", "other/c")
    limits = {"models": {"acme/a": 3}, "providers": {"acme": 4}}
    one, host = await scene(db, seeds, 5, with_models=names, concurrency=limits), await new_host(db)
    taken = await owners(db, await claim(db, host, 50))
    a, b, c, d = (taken[agent] for agent in one.agents)
    assert a + b <= 3
    assert a + b + c == 4
    assert d == 5
    assert await claim(db, host, 50) == []


async def test_an_agent_is_limited_by_its_label_or_id_before_the_rest(db: Database, seeds: Seeds) -> None:
    one, host = await scene(db, seeds, 5, with_models=(None, None)), await new_host(db)
    await one.change(concurrency={"per_agent": 2, "agents": {one.agents[0]: 1}})
    assert await owners(db, await claim(db, host, 50)) == {one.agents[0]: 1, one.agents[1]: 2}


async def test_a_full_evaluation_hides_nobody_behind_its_queue(db: Database, seeds: Seeds) -> None:
    await scene(db, seeds, 60, concurrency={"total": 1})
    async with db.transaction() as tx:
        plain = await add_run(tx, seeds)
    host = await new_host(db)
    taken = [a.run_id for a in await claim(db, host, 4)]
    assert len(taken) == 2
    assert plain.id in taken


async def test_a_limit_that_is_lowered_stops_nothing_and_lets_nothing_begin(db: Database, seeds: Seeds) -> None:
    one, host = await scene(db, seeds, 6, concurrency={"total": 4}), await new_host(db)
    taken = await claim(db, host)
    await one.change(concurrency={"total": 1})
    assert len(taken) == 4
    for attempt in taken[:3]:
        await end(db, attempt)
        assert await claim(db, host) == []
    await end(db, taken[3])
    assert len(await claim(db, host)) == 1


@pytest.mark.parametrize("whole", [True, False])
async def test_a_hold_lets_nothing_begin_at_once_and_a_release_everything_in_order(
    db: Database, seeds: Seeds, whole: bool
) -> None:
    one, host = await scene(db, seeds, 3, with_models=(None, None)), await new_host(db)
    agents = None if whole else one.agents[:1]
    async with db.transaction() as tx:
        await control.hold(tx, one.id, control.AGENT_HELD, "not now", agent_ids=agents)
    assert await owners(db, await claim(db, host, 1)) == ({} if whole else {one.agents[1]: 1})
    async with db.transaction() as tx:
        held = await control.hold_runs(tx)
    mine = one.runs if whole else one.runs[::2]
    assert held == mine
    first = await one.run(0)
    assert (first.phase, first.attempt) == (Phase.HELD, 0)
    assert first.hold is not None
    assert (first.hold["reason"], first.hold["detail"]) == (control.AGENT_HELD, "not now")
    async with db.transaction() as tx:
        assert await control.release_runs(tx) == []
        await control.release(tx, one.id, agent_ids=agents)
    async with db.transaction() as tx:
        assert await control.release_runs(tx) == mine
        assert await control.hold_runs(tx) == []
    again = await one.run(0)
    assert (again.phase, again.hold, again.queued_at) == (Phase.QUEUED, None, first.queued_at)
    taken = [a.run_id for a in await claim(db, host)]
    assert [run for run in taken if run in mine] == mine


async def test_runs_of_a_stopped_evaluation_are_not_claimed(db: Database, seeds: Seeds) -> None:
    one, host = await scene(db, seeds), await new_host(db)
    await one.change(state="stopped")
    assert await claim(db, host) == []
    async with db.transaction() as tx:
        assert len(await control.hold_runs(tx)) == 3
    async with db.transaction() as tx:
        assert await control.release_runs(tx) == []  # they stay where they are
    await one.change(state="running")
    async with db.transaction() as tx:
        assert len(await control.release_runs(tx)) == 3
    assert len(await claim(db, host)) == 3


async def spend(one: Scene, index: int, usd: str) -> None:
    async with one.db.transaction() as tx:
        await runs.update(tx, one.runs[index], cost_usd_all_attempts=Decimal(usd))


async def test_a_budget_counts_what_live_runs_may_still_spend(db: Database, seeds: Seeds) -> None:
    one = await scene(db, seeds, 6, run={"budget": RunBudget(max_usd="4")}, budget={"agents_usd": "10"})
    host = await new_host(db)
    taken = await claim(db, host)
    assert len(taken) == 3  # 4 + 4 leave 2: one more begins, and then nothing is left
    assert await claim(db, host) == []
    await end(db, taken[0], "1")  # 1 + 4 + 4
    assert len(await claim(db, host)) == 1
    await end(db, taken[1], "9")
    assert await claim(db, host) == []
    await one.change(budget={"agents_usd": None})
    assert len(await claim(db, host)) == 2


async def test_without_a_budget_of_its_own_a_run_counts_as_the_mean_of_its_agents_runs(
    db: Database, seeds: Seeds
) -> None:
    await scene(db, seeds, 9, budget={"agents_usd": "10"})
    host = await new_host(db)
    first = await claim(db, host, 1)
    await end(db, first[0], "3")
    assert len(await claim(db, host)) == 3  # 3 spent, 3 + 3 + 3 to come


async def test_concurrent_claims_share_a_budget(db: Database, seeds: Seeds) -> None:
    await scene(db, seeds, 30, run={"budget": RunBudget(max_usd="1")}, budget={"agents_usd": "7"})
    fleet = [await new_host(db, f"h{i}") for i in range(6)]
    rounds = await asyncio.gather(*(claim(db, host, 3) for host in fleet))
    assert sum(len(found) for found in rounds) == 7


async def test_a_projects_budget_holds_for_runs_without_an_evaluation(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        await projects.change(tx, seeds.project.id, budget={"agents_usd": "5"})
        for _ in range(4):
            await add_run(tx, seeds, budget=RunBudget(max_usd="2"))
    assert len(await claim(db, await new_host(db))) == 3


async def reason(one: Scene, index: int) -> Any:
    async with one.db.reading() as tx:
        found = await queue_places.holds_of(tx, [one.runs[index]])
    return found[one.runs[index]]["reason"]


async def test_a_queued_run_says_what_its_evaluation_keeps_it_for(db: Database, seeds: Seeds) -> None:
    one, host = await scene(db, seeds, concurrency={"total": 1}), await new_host(db)
    assert await reason(one, 0) == "waiting_for_slot"
    await claim(db, host)
    assert await reason(one, 1) == "evaluation_slots"
    async with db.transaction() as tx:
        await control.hold(tx, one.id, control.EVALUATION_HELD, "not now")
    assert await reason(one, 1) == "evaluation_held"
    await one.change(hold=None, concurrency={}, budget={"agents_usd": "1"})
    await spend(one, 0, "1")
    assert await reason(one, 1) == "budget"


async def test_another_priority_goes_to_what_has_not_begun(db: Database, seeds: Seeds) -> None:
    one, host = await scene(db, seeds), await new_host(db)
    await claim(db, host, 1)
    async with db.transaction() as tx:
        assert await control.set_priority(tx, one.id, 7) == 2
    assert [(await one.run(i)).priority for i in range(3)] == [0, 7, 7]
