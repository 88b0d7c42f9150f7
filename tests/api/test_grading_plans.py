"""Grading plans over the API: versions that never change, checked where they come in, and what runs do under them."""

from typing import Any

import pytest

from service.domain.run_states import EndedBecause
from service.domain.verdicts import Verdict, VerdictState
from service.lifecycle.sealing import follow_up
from service.store import gradings, runs, tasks
from tests.api.helpers import Tenant, file_entry

INTEGRITY = {"method": "integrity"}
EXACT = {"answers": [{"id": "a", "type": "int"}], "expected": {"hidden": "answers.json"}}


async def make(tenant: Tenant, name: str, *graders: dict[str, Any], status: int = 201, **fields: Any) -> Any:
    return await tenant.post("/v1/grading-plans", {"name": name, "spec": {"graders": list(graders), **fields}}, status)


async def test_the_same_words_are_the_same_version_and_others_the_next(tenant: Tenant) -> None:
    first = await make(tenant, "house/style", INTEGRITY)
    assert (first["plan"], first["version"], first["spec"]["combine"]) == ("house/style@1", 1, "sum")
    assert (await make(tenant, "house/style", INTEGRITY, status=200))["id"] == first["id"]
    second = await make(tenant, "house/style", INTEGRITY, combine="min")
    assert second["version"] == 2
    again = await make(tenant, "house/style", INTEGRITY)
    assert (again["version"], again["digest"]) == (3, first["digest"]), "what says it now is a version of its own"
    assert (await tenant.get("/v1/grading-plans/house/style@1"))["id"] == first["id"]
    assert (await tenant.get("/v1/grading-plans/house/style"))["version"] == 3
    listed = await tenant.get("/v1/grading-plans?name=house/style&sort=created_at")
    assert [p["version"] for p in listed["data"]] == [1, 2, 3]
    for wrong in ("house/style@4", "house/style@0", "house/style@01", "nobody"):
        await tenant.get(f"/v1/grading-plans/{wrong}", 404)


async def test_the_built_in_plan_is_there_and_cannot_be_replaced(tenant: Tenant) -> None:
    built_in = await tenant.get("/v1/grading-plans/task@1")
    assert (built_in["id"], built_in["spec"]["graders"], built_in["plan"]) == (None, [], "task@1")
    assert (await make(tenant, "task", INTEGRITY, status=422))["type"].endswith(":plan_built_in")


@pytest.mark.parametrize(
    ("grader", "problem"),
    [
        ({"method": "guess"}, "unknown_grading_method"),
        ({"method": "integrity", "primary": False}, "plan_without_verdict"),
        ({"method": "llm_panel", "settings": {"judges": [{"model": "nobody/none"}]}}, "unknown_judge"),
        ({"method": "llm_panel", "settings": {"judges": [{"model": "x", "temperature": 9}]}}, "bad_judges"),
        ({"method": "llm_panel", "settings": {"judges": "x"}}, "bad_judges"),
    ],
)
async def test_what_could_never_grade_is_refused(tenant: Tenant, grader: dict[str, Any], problem: str) -> None:
    assert (await make(tenant, "p", grader, status=422))["type"] == f"urn:workstead:problem:{problem}"
    await tenant.get("/v1/grading-plans/p", 404)


async def test_a_run_is_graded_under_its_plan(tenant: Tenant) -> None:
    plan = await make(tenant, "both", INTEGRITY, {"method": "exact", "settings": EXACT, "only_where_named": True})
    run = await tenant.run(plan="both")
    assert run["verdict"]["plan"] == plan["plan"]
    await tenant.seal(await tenant.start(run["id"]), [file_entry("output/a", b"x", "text/plain")])
    async with tenant.state.db.transaction() as tx:
        row = await runs.load(tx, run["id"])
        task = await tasks.get(tx, tenant.project_id, row.task_id)
        assert task is not None
        await follow_up(tx, run["id"], task.manifest, EndedBecause.COMPLETED)
    found = (await tenant.get(f"/v1/runs/{run['id']}/gradings"))["data"]
    assert [(g["method"], g["plan"], g["primary"], g["queue"]) for g in found] == [
        ("integrity", plan["plan"], True, "rooms")
    ]


async def test_a_plan_that_cannot_grade_the_task_is_refused_at_submission(tenant: Tenant) -> None:
    await make(tenant, "exact", {"method": "exact", "settings": EXACT})
    task, agent = await tenant.task(), await tenant.agent()
    body = {"task": task["id"], "agent": agent["id"]}
    refused = await tenant.post("/v1/runs", {**body, "plan": "exact"}, 422)
    assert refused["task"] == "t/one"
    assert (await tenant.post("/v1/runs", {**body, "plan": "nobody"}, 404))["type"].endswith(":plan_not_found")
    await make(tenant, "unnamed", {"method": "exact", "only_where_named": True})
    assert (await tenant.post("/v1/runs", {**body, "plan": "unnamed"}, 422))["type"].endswith(":no_graders")
    await make(tenant, "judged", {"method": "llm_panel"})
    assert (await tenant.post("/v1/runs", {**body, "plan": "judged"}, 422))["type"].endswith(":judges_missing")


async def test_a_second_plan_stands_beside_the_first_until_it_takes_over(tenant: Tenant) -> None:
    run = await tenant.run()
    await tenant.seal(await tenant.start(run["id"]), [file_entry("output/a", b"x", "text/plain")])
    await tenant.finish(run["id"])
    await make(tenant, "checked", INTEGRITY)
    path = f"/v1/runs/{run['id']}/gradings"
    beside = (await tenant.post(path, {"plan": "checked"}, 202))["data"][0]
    await decide(tenant, beside["id"], 1.0)
    assert (await tenant.get(f"/v1/runs/{run['id']}"))["outcome"] == "ungraded", "the run follows its own plan"
    (taking,) = (await tenant.post(path, {"plan": "checked", "primary": True}, 202))["data"]
    assert taking["round"] == 2
    assert (await tenant.get(f"/v1/runs/{run['id']}"))["verdict"]["plan"] == "task@1"
    await decide(tenant, taking["id"], 0.5)
    now = await tenant.get(f"/v1/runs/{run['id']}")
    assert (now["outcome"], now["verdict"]["plan"], now["verdict"]["score"]) == ("graded", "checked@1", 0.5)
    assert (await tenant.post(path, {"plan": "task@1", "round": 2}, 409))["type"].endswith(":no_graders")


async def decide(tenant: Tenant, grading_id: str, score: float) -> None:
    async with tenant.state.db.transaction() as tx:
        await gradings.finish(tx, grading_id, Verdict(VerdictState.GRADED, score, 1.0))
