"""``/v1/evaluations``: drafted whole or refused with everything that is wrong, started once, stopped, resumed, redone."""

from collections import Counter
from typing import Any

import pytest

from service.domain.run_states import EndedBecause, Outcome, Phase
from service.store import hosts, runs
from service.store.evaluations import evaluations, members
from service.store.rows import HostRow
from tests.api.helpers import Tenant

SOURCE = {"importer": "made_up", "importer_version": "1"}


def item(key: str, **task: Any) -> dict[str, Any]:
    return {"key": key, "task": {"name": f"t/{key}", "instruction": f"do {key}", **task}}


async def benchmark(tenant: Tenant, *items: Any, version: str = "1") -> Any:
    body = {"name": "set", "version": version, "source": SOURCE, "items": [*items]}
    return await tenant.post("/v1/benchmarks", {"manifest": body})


async def three(tenant: Tenant) -> Any:
    return await benchmark(tenant, *(item(key, facets={"area": area}) for key, area in zip("abc", "xyx", strict=True)))


async def scaffold(tenant: Tenant, name: str, version: str = "1", **more: Any) -> None:
    body = {"name": name, "version": version, "kind": "command", "argv": ["true"], **more}
    answer = await tenant.client.post("/v1/scaffolds", json=body)
    assert answer.status_code in (200, 201), answer.text


async def draft(tenant: Tenant, status: int = 201, **more: Any) -> Any:
    """Two agents on three tasks, two samples each, unless told otherwise."""
    if "benchmark" not in more and "task_ids" not in more:
        more["benchmark"] = (await three(tenant))["id"]
    if "agents" not in more and "matrix" not in more:
        await scaffold(tenant, "left")
        await scaffold(tenant, "right")
        more["agents"] = [{"scaffold": "left@1"}, {"scaffold": "right@1"}]
    return await tenant.post("/v1/evaluations", {"name": "week 48", "samples": 2} | more, status)


async def start(tenant: Tenant, made: Any, status: int = 200) -> Any:
    headers = {"If-Match": f'"{made["revision"]}"'}
    return await tenant.post(f"/v1/evaluations/{made['id']}/start", {"skip_preflight": True}, status, **headers)


async def runs_of(tenant: Tenant, made: Any, **where: str) -> list[Any]:
    query = "&".join(f"{k}={v}" for k, v in {"evaluation_id": made["id"], "limit": "500", **where}.items())
    found: list[Any] = (await tenant.get(f"/v1/runs?{query}"))["data"]
    return found


async def end(tenant: Tenant, run_id: str, outcome: Outcome, cause: EndedBecause = EndedBecause.COMPLETED) -> None:
    async with tenant.state.db.transaction() as tx:
        await runs.set_phase(tx, run_id, Phase.DONE, outcome=outcome, ended_because=cause)


async def assert_counts(tenant: Tenant, made: Any) -> Any:
    """The evaluation's counts are those of its runs, of each agent and of all."""
    seen, found = await tenant.get(f"/v1/evaluations/{made['id']}"), await runs_of(tenant, made)
    for name in ("phase", "outcome", "ended_because"):
        assert seen["counts"][name] == Counter(r[name] for r in found if r[name] is not None), name
        for agent in seen["agents"]:
            own = [r for r in found if r["agent"]["id"] == agent["id"]]
            assert agent["counts"][name] == Counter(r[name] for r in own if r[name] is not None), name
            assert agent["total"] == len(own)
    assert seen["total"] == len(found)
    return seen


async def test_a_draft_says_what_it_means_and_runs_nothing(tenant: Tenant) -> None:
    bench = await three(tenant)
    made = await draft(tenant, benchmark="set@1", labels={"week": "48"}, seed=7, run={"labels": {"of": "draft"}})
    assert (made["state"], made["total"], made["plan"]) == ("draft", 0, "task@1")
    resolved = made["resolved"]
    assert resolved["benchmark"] == {
        "id": bench["id"],
        "name": "set",
        "version": "1",
        "digest": resolved["benchmark"]["digest"],
    }
    assert [task["key"] for task in resolved["tasks"]] == ["a", "b", "c"]
    assert all(len(task["digest"]) == 64 for task in resolved["tasks"])
    assert [(a["scaffold"], a["samples"], a["runs"]) for a in resolved["agents"]] == [
        ("left@1", 2, 6),
        ("right@1", 2, 6),
    ]
    assert resolved["images"] == ["base"]
    assert resolved["seed"] == 7
    assert resolved["service_version"]
    assert made["estimate"]["runs"] == 12
    assert made["estimate"]["run_hours"] is None
    assert [one["basis"] for one in made["estimate"]["agents"]] == ["none", "none"]
    assert made["estimate"]["agents_usd"] == {"p10": "0.000000", "p50": "0.000000", "p90": "0.000000"}
    assert await runs_of(tenant, made) == []
    again = await tenant.client.get(f"/v1/evaluations/{made['id']}", headers={"If-None-Match": f'"{made["revision"]}"'})
    assert again.status_code == 304


async def test_a_name_alone_is_the_newest_version(tenant: Tenant) -> None:
    await benchmark(tenant, item("a"))
    newer = await benchmark(tenant, item("a"), item("b"), version="2")
    await scaffold(tenant, "left", "1.9")
    await scaffold(tenant, "left", "1.10")
    made = await draft(tenant, benchmark="set", agents=[{"scaffold": "left"}])
    assert made["benchmark_id"] == newer["id"]
    assert made["resolved"]["agents"][0]["scaffold"] == "left@1.10"


async def test_everything_that_is_wrong_is_told_at_once(tenant: Tenant) -> None:
    await scaffold(tenant, "left")
    await scaffold(tenant, "needy", dialect="openai", kit=None)
    agents = [
        {"scaffold": "gone@1"},
        {"scaffold": "left@1", "model": "acme/none"},
        {"scaffold": "left@1", "label": "mine", "run": {"limits": {"wall_clock_s": -1}}},
        {"agent": "nobody"},
        {"agent": "mine"},
    ]
    problem = await draft(tenant, 422, agents=agents)
    assert problem["type"].endswith(":evaluation_refused")
    told = {(p["agent"], p["type"]) for p in problem["problems"]}
    assert told == {
        ("gone@1", "scaffold_not_found"),
        ("left@1 · acme/none", "model_not_found"),
        ("mine", "bad_limits"),
        ("nobody", "agent_not_found"),
        ("mine", "duplicate_agent"),
    }
    assert (await tenant.get("/v1/agents"))["data"] == []
    assert (await tenant.get("/v1/evaluations"))["data"] == []


async def test_an_agent_is_checked_once_for_tasks_that_are_alike(tenant: Tenant) -> None:
    """The oracle has nothing to deliver for two of three tasks: one problem that says how many."""
    sha = await tenant.blob(b"solved")
    solved = [{"path": "solution/a.txt", "sha256": sha, "size_bytes": 6}]
    bench = await benchmark(tenant, item("a", hidden=solved), item("b"), item("c"))
    await tenant.post("/v1/scaffolds", {"name": "solved", "version": "1", "kind": "oracle"})
    problem = await draft(tenant, 422, benchmark=bench["id"], agents=[{"scaffold": "solved@1"}])
    (one,) = problem["problems"]
    assert (one["type"], one.get("tasks")) == ("no_reference_solution", 2)


@pytest.mark.parametrize(
    ("tasks", "keys"),
    [
        ({}, "abc"),
        ({"include": ["a", "t/b"]}, "ab"),
        ({"exclude": ["[bc]"]}, "a"),
        ({"facets": {"area": ["x"]}}, "ac"),
        ({"include": ["q"]}, "q"),
        ({"include": ["*"], "disputed": False}, "abc"),
    ],
)
async def test_tasks_are_chosen(tenant: Tenant, tasks: Any, keys: str) -> None:
    others = [
        {**item("q"), "status": "quarantined", "problems": [{"type": "odd"}]},
        {**item("d"), "status": "disputed", "problems": [{"type": "contested"}]},
    ]
    named = [item(key, facets={"area": area}) for key, area in zip("abc", "xyx", strict=True)]
    bench = await benchmark(tenant, *named, *others)
    made = await draft(tenant, benchmark=bench["id"], tasks={"disputed": False} | tasks)
    assert "".join(task["key"] for task in made["resolved"]["tasks"]) == keys


async def test_warnings_do_not_stop_a_draft(tenant: Tenant) -> None:
    await scaffold(tenant, "left")
    await tenant.model("acme/one")
    made = await draft(
        tenant,
        agents=[{"scaffold": "left@1", "model": "acme/one", "run": {"network": "web"}}],
        tasks={"include": ["*", "typo"]},
    )
    warned = {w["type"] for w in made["warnings"]}
    assert {"model_without_credential", "unknown_price", "policy_changed", "useless_pattern", "no_graders"} <= warned


async def test_a_start_needs_what_was_seen_and_happens_once(tenant: Tenant) -> None:
    made = await draft(tenant)
    path = f"/v1/evaluations/{made['id']}/start"
    assert (await tenant.post(path, {}, 428))["type"].endswith(":if_match_missing")
    stale = {"If-Match": f'"{made["revision"] - 1}"'}
    assert (await tenant.post(path, {}, 412, **stale))["type"].endswith(":changed_meanwhile")
    started = await start(tenant, made)
    assert (started["state"], started["total"], started["changed"]) == ("running", 12, {"made": 12})
    assert started["resolved"]["preflight_skipped"] is True
    await start(tenant, started, 409)
    seen = await assert_counts(tenant, made)
    assert seen["counts"]["phase"] == {"queued": 12}


async def test_runs_begin_in_breadth(tenant: Tenant) -> None:
    made = await draft(tenant)
    await start(tenant, made)
    found = sorted(await runs_of(tenant, made), key=lambda r: r["id"])
    names = [(r["sample"], r["task"]["name"], r["agent"]["label"]) for r in found]
    assert names == sorted(names)
    assert len(set(names)) == 12
    run = await tenant.get(f"/v1/runs/{found[-1]['id']}")
    assert run["hold"]["project_position"] == 12
    log = await tenant.get(f"/v1/runs/{run['id']}/events")
    assert [(e["seq"], e["type"], e["payload"]["phase"]) for e in log["data"]] == [(1, "run.phase", "queued")]


async def test_claims_take_them_in_this_order(tenant: Tenant) -> None:
    made = await draft(tenant, order="depth", samples=1)
    await start(tenant, made)
    found = sorted(await runs_of(tenant, made), key=lambda r: r["id"])
    assert [r["agent"]["label"] for r in found] == ["left@1"] * 3 + ["right@1"] * 3
    first = await tenant.claim(found[0]["id"])
    assert first.n == 1
    seen = await assert_counts(tenant, made)
    assert seen["counts"]["phase"] == {"provisioning": 6}


async def test_counts_follow_the_runs_and_the_end_is_the_databases(tenant: Tenant) -> None:
    made = await draft(tenant, samples=1)
    await start(tenant, made)
    found, seen = await runs_of(tenant, made), made
    for n, run in enumerate(found):
        await end(tenant, run["id"], Outcome.GRADED if n % 2 else Outcome.UNGRADED)
        seen = await assert_counts(tenant, made)
        assert seen["state"] == ("done" if n == len(found) - 1 else "running")
    assert seen["ended_at"] is not None
    assert seen["throughput_per_h"] > 0
    assert (await tenant.client.delete(f"/v1/runs/{found[0]['id']}")).status_code == 204
    assert (await assert_counts(tenant, made))["total"] == 5


async def test_stop_cancels_what_has_not_begun_and_resume_makes_what_is_missing(tenant: Tenant) -> None:
    made = await draft(tenant, samples=1)
    await start(tenant, made)
    found = sorted(await runs_of(tenant, made), key=lambda r: r["id"])
    await end(tenant, found[0]["id"], Outcome.GRADED)
    stopped = await tenant.post(f"/v1/evaluations/{made['id']}/stop", {"mode": "queued"}, 200)
    assert (stopped["state"], stopped["changed"]) == ("stopped", {"cancelled": 5, "stopping": 0})
    seen = await assert_counts(tenant, made)
    assert seen["counts"]["outcome"] == {"graded": 1, "cancelled": 5}
    log = await tenant.get(f"/v1/runs/{found[1]['id']}/events")
    assert [e["type"] for e in log["data"]] == ["run.phase", "stop.requested", "run.phase"]
    again = await tenant.post(f"/v1/evaluations/{made['id']}/resume", None, 200)
    assert (again["state"], again["changed"], again["total"]) == ("running", {"made": 5}, 11)
    new = await runs_of(tenant, made, phase="queued")
    assert {r["derived_from"] for r in new} == {r["id"] for r in found[1:]}
    assert (await tenant.post(f"/v1/evaluations/{made['id']}/resume", None, 200))["changed"] == {"made": 0}


@pytest.mark.parametrize(("mode", "flag"), [("collect", "collect"), ("discard", "discard"), ("queued", None)])
async def test_stop_ends_live_runs_as_asked(tenant: Tenant, mode: str, flag: str | None) -> None:
    made = await draft(tenant, samples=1)
    await start(tenant, made)
    found = await runs_of(tenant, made)
    await tenant.start(found[0]["id"])
    stopped = await tenant.post(f"/v1/evaluations/{made['id']}/stop", {"mode": mode}, 200)
    assert stopped["changed"]["cancelled"] + stopped["changed"]["stopping"] == (6 if flag else 0)
    async with tenant.state.db.reading() as tx:
        assert (await runs.load(tx, found[0]["id"])).stop_mode == flag


async def test_a_deleted_run_is_missing(tenant: Tenant) -> None:
    made = await draft(tenant, samples=1)
    await start(tenant, made)
    found = await runs_of(tenant, made)
    for run in found:
        await end(tenant, run["id"], Outcome.GRADED)
    assert (await tenant.client.delete(f"/v1/runs/{found[0]['id']}")).status_code == 204
    again = await tenant.post(f"/v1/evaluations/{made['id']}/resume", None, 200)
    assert (again["state"], again["changed"], again["ended_at"]) == ("running", {"made": 1}, None)


async def test_resuming_what_lacks_nothing_changes_nothing(tenant: Tenant) -> None:
    made = await draft(tenant, samples=1)
    await start(tenant, made)
    for run in await runs_of(tenant, made):
        await end(tenant, run["id"], Outcome.GRADED)
    before = await tenant.get(f"/v1/evaluations/{made['id']}")
    again = await tenant.post(f"/v1/evaluations/{made['id']}/resume", None, 200)
    assert (again["state"], again["ended_at"]) == ("done", before["ended_at"])
    assert again["ended_at"] is not None


async def test_an_agent_that_a_draft_gets_is_in_its_estimate(tenant: Tenant) -> None:
    made = await draft(tenant)
    await scaffold(tenant, "third")
    again = await tenant.post(f"/v1/evaluations/{made['id']}/agents", [{"scaffold": "third@1"}], 200)
    assert (again["state"], again["changed"], again["estimate"]["runs"]) == ("draft", {"made": 0}, 18)
    assert (await start(tenant, again))["total"] == 18


async def test_only_an_added_agents_runs_are_made(tenant: Tenant) -> None:
    made = await draft(tenant, samples=1, run={"labels": {"of": "all"}})
    await start(tenant, made)
    await scaffold(tenant, "third")
    body = [{"scaffold": "third@1", "samples": 2, "run": {"labels": {"own": "yes"}}}]
    again = await tenant.post(f"/v1/evaluations/{made['id']}/agents", body, 200)
    assert again["changed"] == {"made": 6}
    assert [agent["label"] for agent in again["agents"]] == ["left@1", "right@1", "third@1"]
    assert [agent["label"] for agent in again["resolved"]["agents"]] == ["left@1", "right@1", "third@1"]
    new = await runs_of(tenant, made, agent_id=again["agents"][2]["id"])
    assert new[0]["labels"] == {"of": "all", "own": "yes"}
    await assert_counts(tenant, made)
    problem = await tenant.post(f"/v1/evaluations/{made['id']}/agents", body, 422)
    assert problem["problems"][0]["type"] == "duplicate_agent"


async def test_retry_redoes_what_ended_so(tenant: Tenant) -> None:
    made = await draft(tenant, samples=1)
    await start(tenant, made)
    found = await runs_of(tenant, made)
    await end(tenant, found[0]["id"], Outcome.UNGRADED, EndedBecause.SANDBOX_LOST)
    await end(tenant, found[1]["id"], Outcome.UNGRADED, EndedBecause.COMPLETED)
    await end(tenant, found[2]["id"], Outcome.GRADED, EndedBecause.WALL_CLOCK)
    path = f"/v1/evaluations/{made['id']}/retry"
    assert (await tenant.post(path, {}, 422))["type"].endswith(":nothing_named")
    again = await tenant.post(path, {"because": ["sandbox_lost", "wall_clock"], "outcomes": ["ungraded"]}, 200)
    assert again["changed"] == {"made": 1}
    seen = await assert_counts(tenant, made)
    assert seen["counts"]["outcome"] == {"invalidated": 1, "ungraded": 1, "graded": 1}
    (new,) = [r for r in await runs_of(tenant, made, phase="queued") if r["derived_from"]]
    assert new["derived_from"] == found[0]["id"]
    assert (await tenant.post(path, {"because": ["sandbox_lost"]}, 200))["changed"] == {"made": 0}


async def test_a_start_checks_first_and_may_be_called_off(tenant: Tenant) -> None:
    made = await draft(tenant)
    path = f"/v1/evaluations/{made['id']}"
    checking = await tenant.post(f"{path}/start", {}, 200, **{"If-Match": f'"{made["revision"]}"'})
    assert (checking["state"], checking["total"]) == ("checking", 0)
    operation = checking["preflight"]["operation_id"]
    off = await tenant.post(f"{path}/stop", {"mode": "queued"}, 200)
    assert off["state"] == "draft"
    assert (await tenant.get(f"/v1/operations/{operation}"))["state"] == "cancelled"


async def test_only_what_has_no_runs_is_deleted(tenant: Tenant) -> None:
    made = await draft(tenant)
    started = await start(tenant, made)
    assert (await tenant.client.delete(f"/v1/evaluations/{made['id']}")).status_code == 409
    await tenant.post(f"/v1/evaluations/{started['id']}/stop", {"mode": "discard"}, 200)
    answer = await tenant.client.delete(f"/v1/evaluations/{made['id']}")
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (409, "evaluation_has_runs")
    for run in await runs_of(tenant, made):
        assert (await tenant.client.delete(f"/v1/runs/{run['id']}")).status_code == 204
    assert (await tenant.client.delete(f"/v1/evaluations/{made['id']}")).status_code == 204
    await tenant.get(f"/v1/evaluations/{made['id']}", 404)


async def test_a_deleted_draft_takes_the_agents_along_that_it_has_made(tenant: Tenant) -> None:
    bench = await three(tenant)
    for name in ("left", "right"):
        await scaffold(tenant, name)
    kept = await tenant.post("/v1/agents", {"scaffold": "right@1", "label": "kept"})
    slip = await draft(
        tenant, benchmark=bench["id"], agents=[{"scaffold": "left@1", "label": "ours"}, {"agent": kept["id"]}]
    )
    right = {
        "benchmark": bench["id"],
        "agents": [{"scaffold": "left@1", "settings": {"effort": "high"}, "label": "ours"}],
    }
    assert "label_taken" in str(await draft(tenant, 422, **right))
    other = await draft(tenant, benchmark=bench["id"], agents=[{"scaffold": "left@1"}])
    assert (await tenant.client.delete(f"/v1/evaluations/{slip['id']}")).status_code == 204
    assert "label_taken" in str(await draft(tenant, 422, **right)), "another draft has it"
    # Which made none of its own.
    assert (await tenant.client.delete(f"/v1/evaluations/{other['id']}")).status_code == 204
    assert {agent["label"] for agent in (await tenant.get("/v1/agents"))["data"]} == {"ours", "kept"}
    again = await draft(tenant, benchmark=bench["id"], agents=[{"scaffold": "right@1"}, {"scaffold": "left@1"}])
    assert (await tenant.client.delete(f"/v1/evaluations/{again['id']}")).status_code == 204
    assert {agent["label"] for agent in (await tenant.get("/v1/agents"))["data"]} == {"ours", "kept"}


async def test_the_label_of_a_deleted_draft_is_free(tenant: Tenant) -> None:
    bench = await three(tenant)
    await scaffold(tenant, "left")
    slip = await draft(tenant, benchmark=bench["id"], agents=[{"scaffold": "left@1", "label": "ours"}])
    assert (await tenant.client.delete(f"/v1/evaluations/{slip['id']}")).status_code == 204
    assert (await tenant.get("/v1/agents"))["data"] == []
    mended = {"scaffold": "left@1", "settings": {"effort": "high"}, "label": "ours"}
    made = await draft(tenant, benchmark=bench["id"], agents=[mended])
    assert [agent["label"] for agent in made["agents"]] == ["ours"]


async def test_the_list_filters_sorts_and_tells_of_changes(tenant: Tenant) -> None:
    bench = await three(tenant)
    one = await draft(tenant, benchmark=bench["id"], labels={"week": "48"})
    two = await draft(tenant, benchmark=bench["id"], name="another", labels={"week": "49"})
    await start(tenant, two)
    assert [e["id"] for e in (await tenant.get("/v1/evaluations?label.week=48"))["data"]] == [one["id"]]
    assert [e["id"] for e in (await tenant.get("/v1/evaluations?state=running"))["data"]] == [two["id"]]
    assert [e["id"] for e in (await tenant.get("/v1/evaluations?sort=name"))["data"]] == [two["id"], one["id"]]
    both = await tenant.get(f"/v1/evaluations?benchmark_id={bench['id']}&fields=state,resolved")
    assert {(e["state"], e["resolved"]) for e in both["data"]} == {("draft", None), ("running", None)}
    fed = (await tenant.get("/v1/changes?kinds=evaluation"))["data"]
    assert {(c["id"], c["body"]["state"], c["body"]["total"]) for c in fed} == {
        (one["id"], "draft", 0),
        (two["id"], "running", 12),
    }


async def test_the_log_says_who_did_what(tenant: Tenant) -> None:
    made = await draft(tenant)
    await start(tenant, made)
    await tenant.post(f"/v1/evaluations/{made['id']}/stop", {"mode": "queued"}, 200)
    async with tenant.state.db.reading() as tx:
        log = await evaluations.log(tx, made["id"])
    assert [row.action for row in log] == ["draft", "start", "stop", "stopped"]
    assert {row.actor for row in log} == {made["author"]}


async def test_agents_are_made_only_by_who_may_make_them(tenant: Tenant) -> None:
    bench, agent = await three(tenant), await tenant.agent()
    headers = await tenant.token("runs:write")
    body = {"name": "x", "benchmark": bench["id"], "agents": [{"scaffold": "solver@1"}]}
    assert (await tenant.client.post("/v1/evaluations", json=body, headers=headers)).status_code == 403
    named = body | {"agents": [{"agent": agent["id"]}]}
    assert (await tenant.client.post("/v1/evaluations", json=named, headers=headers)).status_code == 201


async def test_an_estimate_rests_on_what_the_agent_took(tenant: Tenant) -> None:
    async with tenant.state.db.transaction() as tx:
        await hosts.register(tx, HostRow("estimates", "e", 4, ("runc",), ("base",)))
    made = await draft(tenant, samples=1)
    await start(tenant, made)
    async with tenant.state.db.transaction() as tx:
        first = (await members.agents_of(tx, made["id"]))[0].agent_id
    for run in await runs_of(tenant, made, agent_id=first):
        await end(tenant, run["id"], Outcome.GRADED)
        async with tenant.state.db.transaction() as tx:
            await runs.update(tx, run["id"], wall_s=3600.0, cost_usd_all_attempts=2)
    again = await tenant.post(f"/v1/evaluations/{made['id']}/estimate", None, 200)
    left, right = again["estimate"]["agents"]
    assert (left["basis"], left["n"], left["run_hours"]["p50"]) == ("history", 3, 3.0)
    assert right["basis"] == "none"
    assert again["estimate"]["run_hours"] is None
    assert again["revision"] > made["revision"]
