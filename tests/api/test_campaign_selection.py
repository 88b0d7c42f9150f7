"""What a campaign draws: by verdict, plan, sample and strata, the same for the same seed."""

from typing import Any

from sqlalchemy import text

from service.domain.tasks import GraderSpec
from service.domain.verdicts import Verdict, VerdictState
from service.store import gradings, runs
from service.store.gradings import Occasion
from tests.api.helpers import Tenant
from tests.api.raters import PANEL, commissioned, delivered


async def _runs(one: Tenant, scores: list[float | None]) -> list[str]:
    agent = await one.agent()
    found: list[str] = []
    for i, score in enumerate(scores):
        run_id = await delivered(one, await commissioned(one, f"t/{i}", category=f"c{i % 2}", n=i), agent["id"])
        async with one.state.db.transaction() as tx:
            query = text("UPDATE runs SET score = :s, max_score = :m WHERE id = :id")
            await tx.execute(query, {"s": score, "m": None if score is None else 4.0, "id": run_id})
        found.append(run_id)
    return found


async def _drawn(one: Tenant, status: int = 201, **selection: Any) -> list[str]:
    made = await one.post("/v1/campaigns", PANEL | {"selection": selection}, status)
    if status != 201:
        return []
    return [i["run_id"] for i in (await one.get(f"/v1/campaigns/{made['id']}/items"))["data"]]


async def test_successes_and_rejections_of_the_runs_own_plan(tenant: Tenant) -> None:
    full, half, low, zero, none = await _runs(tenant, [4.0, 2.0, 1.0, 0.0, None])
    assert await _drawn(tenant, verdict="accepted") == sorted([full, half])
    assert await _drawn(tenant, verdict="accepted", accepted_from=1.0) == [full]
    assert await _drawn(tenant, verdict="rejected") == sorted([low, zero])
    assert await _drawn(tenant) == sorted([full, half, low, zero, none])
    assert await _drawn(tenant, where={"ids": [low, none]}) == sorted([low, none])


async def test_only_an_evaluations_own_runs(tenant: Tenant) -> None:
    mine, _ = await _runs(tenant, [4.0, 4.0])
    run = await tenant.get(f"/v1/runs/{mine}")
    said = {"name": "week", "task_ids": [run["task"]["id"]], "agents": [{"agent": run["agent"]["id"]}]}
    made = await tenant.post("/v1/evaluations", said)
    async with tenant.state.db.transaction() as tx:
        await tx.execute(text("UPDATE runs SET evaluation_id = :e WHERE id = :r"), {"e": made["id"], "r": mine})
    assert await _drawn(tenant, where={"evaluation_id": [made["id"]]}) == [mine]


async def test_verdicts_of_another_plan_are_those_of_its_newest_round(tenant: Tenant) -> None:
    first, second = await _runs(tenant, [4.0, 0.0])
    for run_id, rounds in ((first, (1.0, 0.0)), (second, (1.0,))):
        for number, score in enumerate(rounds, 1):
            async with tenant.state.db.transaction() as tx:
                run = await runs.load(tx, run_id)
                spec = [GraderSpec(method="exact", settings={})]
                (row,) = await gradings.enqueue(tx, run, spec, round=number, occasion=Occasion("strict@2"))
                await gradings.finish(tx, row.id, Verdict(VerdictState.GRADED, score, 1.0))
    assert await _drawn(tenant, verdict="accepted", plan="strict@2") == [second]
    assert await _drawn(tenant, verdict="rejected", plan="strict@2") == [first]
    assert await _drawn(tenant, 422, verdict="rejected", plan="other@1") == []


async def test_a_sample_is_spread_and_the_seed_decides(tenant: Tenant) -> None:
    every = await _runs(tenant, [None] * 8)
    drawn = await _drawn(tenant, n=4, stratify="category", seed=3)
    assert {every.index(run) % 2 for run in drawn} == {0, 1}
    assert sum(every.index(run) % 2 for run in drawn) == 2
    assert await _drawn(tenant, n=4, stratify="category", seed=3) == drawn
    others = [await _drawn(tenant, n=4, stratify="category", seed=seed) for seed in (4, 5, 6)]
    assert any(sorted(other) != sorted(drawn) for other in others)
    assert len(await _drawn(tenant, n=100, stratify="n")) == 8
