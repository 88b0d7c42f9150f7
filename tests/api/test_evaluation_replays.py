"""An evaluation drafted as the replay of another: all of it as it was, each run answered by the one in its place."""

from typing import Any

from service.domain.run_states import Outcome
from service.store.tables import runs as runs_table
from tests.api.helpers import Tenant
from tests.api.test_evaluations import assert_counts, draft, end, item, runs_of, start


async def whole(tenant: Tenant, **more: Any) -> Any:
    """An evaluation of 2 agents on 3 tasks, two samples each, all of it graded."""
    made = await draft(tenant, seed=7, tasks={"exclude": ["nothing*"]}, run={"labels": {"of": "first"}}, **more)
    await start(tenant, made)
    for run in await runs_of(tenant, made):
        await end(tenant, run["id"], Outcome.GRADED)
    return await tenant.get(f"/v1/evaluations/{made['id']}")


async def replay(tenant: Tenant, made: Any, status: int = 201, **more: Any) -> Any:
    return await tenant.post("/v1/evaluations", {"name": "again", "replay_of": made["id"], **more}, status)


def place(run: Any) -> tuple[str, str, int]:
    return run["agent"]["id"], run["task"]["id"], run["sample"]


async def test_a_replay_is_the_same_agents_tasks_and_samples(tenant: Tenant) -> None:
    before = await whole(tenant)
    again = await replay(tenant, before, labels={"why": "check"})
    assert (again["state"], again["name"], again["seed"], again["plan"]) == ("draft", "again", 7, before["plan"])
    for name in ("benchmark", "tasks", "seed", "order", "plan"):
        assert again["resolved"][name] == before["resolved"][name], name
    assert [(a["id"], a["samples"]) for a in again["resolved"]["agents"]] == [
        (a["id"], a["samples"]) for a in before["resolved"]["agents"]
    ]
    assert (again["spec"]["replay_of"], again["resolved"]["replay_of"]) == (before["id"], before["id"])
    assert (before["resolved"]["replay_of"], again["labels"]) == (None, {"why": "check"})
    # Without a word on preflights: a replay asks nobody.
    headers = {"If-Match": f'"{again["revision"]}"'}
    started = await tenant.post(f"/v1/evaluations/{again['id']}/start", {}, 200, **headers)
    assert (started["state"], started["resolved"]["preflight_skipped"]) == ("running", True)
    recorded = {place(run): run["id"] for run in await runs_of(tenant, before)}
    made = await runs_of(tenant, again)
    assert {place(run): run["replay_of"] for run in made} == recorded
    assert all(run["derived_from"] == run["replay_of"] and "replayed" in run["flags"] for run in made)
    assert all(run["labels"]["of"] == "first" for run in made)
    await assert_counts(tenant, again)


async def test_what_is_invalidated_and_redone_is_replayed_as_it_counts(tenant: Tenant) -> None:
    before = await whole(tenant)
    first, *_ = await runs_of(tenant, before)
    filter_ = {"filter": {"ids": [first["id"]]}, "reason": "fixture"}
    await tenant.post("/v1/runs:invalidate", filter_, 200)
    refused = await replay(tenant, before, 409)
    assert refused["type"].endswith(":not_replayable")
    assert (refused["missing"], refused["not_done"]) == (1, 0)
    await tenant.post(f"/v1/evaluations/{before['id']}/resume", None, 200)
    refused = await replay(tenant, before, 409)
    assert (refused["missing"], refused["not_done"]) == (0, 1)
    (redone,) = await runs_of(tenant, before, phase="queued")
    await end(tenant, redone["id"], Outcome.GRADED)
    again = await replay(tenant, before)
    await start(tenant, again)
    assert redone["id"] in {run["replay_of"] for run in await runs_of(tenant, again)}
    assert first["id"] not in {run["replay_of"] for run in await runs_of(tenant, again)}


async def test_a_replay_says_nothing_else_and_gets_no_other_agents(tenant: Tenant, other: Tenant) -> None:
    before = await whole(tenant)
    for more in ({"samples": 3}, {"seed": 8}, {"agents": [{"scaffold": "left@1"}]}, {"tasks": {"limit": 1}}):
        problem = await replay(tenant, before, 422, **more)
        assert problem["type"].endswith(":replay_says_more"), problem
        assert problem["fields"] == [*more]
    assert (await replay(other, before, 404))["type"].endswith(":evaluation_not_found")
    again = await replay(tenant, before)
    problem = await tenant.post(f"/v1/evaluations/{again['id']}/agents", [{"scaffold": "left@1"}], 409)
    assert problem["type"].endswith(":evaluation_is_replay")


async def test_a_recording_that_is_gone_is_told_before_anything_runs(tenant: Tenant) -> None:
    before = await whole(tenant)
    again = await replay(tenant, before)
    first, *_ = await runs_of(tenant, before)
    async with tenant.state.db.transaction() as tx:
        await tx.execute(runs_table.delete().where(runs_table.c.id == first["id"]))
    problem = await start(tenant, again, 409)
    assert (problem["type"].rpartition(":")[2], problem["runs"]) == ("recording_gone", 1)
    assert await runs_of(tenant, again) == []


async def test_work_that_nothing_can_do_again_is_not_replayed(tenant: Tenant) -> None:
    await tenant.post("/v1/scaffolds", {"name": "people", "version": "1", "kind": "external"})
    bench = await tenant.post(
        "/v1/benchmarks",
        {"manifest": {"name": "one", "version": "1", "source": {"importer": "x", "importer_version": "1"}, "items": [item("a")]}},
    )  # fmt: skip
    made = await draft(tenant, benchmark=bench["id"], agents=[{"scaffold": "people@1"}])
    await start(tenant, made)
    for run in await runs_of(tenant, made):
        await end(tenant, run["id"], Outcome.GRADED)
    problem = await replay(tenant, made, 422)
    assert problem["type"].endswith(":evaluation_refused")
    assert [one["type"] for one in problem["problems"]] == ["cannot_replay"]
