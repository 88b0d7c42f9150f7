"""An evaluation that goes on: changed, held, released and watched; runs made void, stopped in bulk, noted."""

from datetime import UTC, datetime, timedelta
from typing import Any

from service.domain.run_states import EndedBecause, Outcome, Phase
from service.store import runs
from service.store.evaluations import watching
from tests.api.helpers import Tenant
from tests.api.test_evaluations import draft, runs_of, start


async def started(tenant: Tenant, **more: Any) -> Any:
    """Two agents on three tasks, two samples each, queued."""
    return await start(tenant, await draft(tenant, **more))


async def end(tenant: Tenant, run_id: str, score: float | None = 1.0, **columns: Any) -> None:
    async with tenant.state.db.transaction() as tx:
        if score is not None:
            columns |= {"score": score, "max_score": 1.0}
        await runs.update(tx, run_id, **columns)
        outcome = Outcome.UNGRADED if score is None else Outcome.GRADED
        await runs.set_phase(tx, run_id, Phase.DONE, outcome=outcome, ended_because=EndedBecause.COMPLETED)


async def patch(tenant: Tenant, made: Any, body: Any, status: int = 200) -> Any:
    answer = await tenant.client.patch(f"/v1/evaluations/{made['id']}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def log(tenant: Tenant, made: Any) -> list[Any]:
    found: list[Any] = (await tenant.get(f"/v1/evaluations/{made['id']}/log"))["data"]
    return found


async def test_settings_change_part_by_part_with_their_author_in_the_log(tenant: Tenant) -> None:
    made = await started(tenant, concurrency={"total": 9})
    label = made["agents"][0]["label"]
    change = {"concurrency": {"per_agent": 2, "agents": {label: 1}}, "budget": {"agents_usd": "20"}, "name": "other"}
    seen = await patch(tenant, made, change)
    assert (seen["name"], seen["budget"]["agents_usd"]) == ("other", "20")
    assert (seen["concurrency"]["total"], seen["concurrency"]["per_agent"]) == (9, 2)
    assert seen["revision"] > made["revision"]
    seen = await patch(tenant, made, {"concurrency": {"total": None}, "stop_rules": {"enabled": False}, "priority": 3})
    assert (seen["concurrency"]["total"], seen["concurrency"]["agents"]) == (None, {label: 1})
    assert (seen["stop_rules"]["enabled"], seen["stop_rules"]["first"]) == (False, 10)
    entries = [entry for entry in await log(tenant, made) if entry["action"] == "change"]
    assert entries[0]["detail"]["name"] == {"from": "week 48", "to": "other"}
    assert entries[1]["detail"]["priority"] == {"from": 0, "to": 3}
    token = (await tenant.get("/v1/me"))["token_id"]
    assert {entry["actor"] for entry in entries} == {token}


async def test_limits_name_what_is_in_the_evaluation(tenant: Tenant) -> None:
    made = await started(tenant)
    for name in ("agents", "models", "providers"):
        problem = await patch(tenant, made, {"concurrency": {name: {"nobody": 1}}}, 422)
        assert problem["type"] == "urn:workstead:problem:not_in_evaluation"
    await patch(tenant, made, {"budget": {"agents_usd": "-1"}}, 422)
    await patch(tenant, made, {"state": "done"}, 422)


async def test_hold_and_release_of_an_agent_and_of_the_whole(tenant: Tenant) -> None:
    made = await started(tenant)
    path, agent = f"/v1/evaluations/{made['id']}", made["agents"][0]
    held = await tenant.post(f"{path}/hold", {"agent": agent["label"], "reason": "wrong flag"}, 200)
    assert [(h["agent_id"], h["reason"]) for h in held["holds"]] == [(agent["id"], "agent_held")]
    assert held["holds"][0]["detail"].endswith("by a person: wrong flag")
    assert held["revision"] > made["revision"]
    held = await tenant.post(f"{path}/hold", {"reason": "night"}, 200)
    assert [h["reason"] for h in held["holds"]] == ["evaluation_held", "agent_held"]
    one = (await runs_of(tenant, made))[0]
    assert (await tenant.get(f"/v1/runs/{one['id']}"))["hold"]["reason"] == "evaluation_held"
    released = await tenant.post(f"{path}/release", {}, 200)
    assert [h["reason"] for h in released["holds"]] == ["agent_held"]
    released = await tenant.post(f"{path}/release", {"agent": agent["id"]}, 200)
    assert released["holds"] == []
    for body in ({"agent": "nobody"}, {"model": "nothing"}):
        problem = await tenant.post(f"{path}/hold", body, 422)
        assert problem["type"] == "urn:workstead:problem:not_in_evaluation"
    actions = [entry["action"] for entry in await log(tenant, made)]
    assert actions[-4:] == ["hold", "hold", "release", "release"]


async def test_judges_without_a_budget_are_a_hold_that_says_what_to_raise(tenant: Tenant) -> None:
    made = await started(tenant, budget={"judges_usd": "1"})
    async with tenant.state.db.transaction() as tx:
        spend = {"judges_usd": "1.2", "judges_held": True, "at": "2026-12-01T00:00:00.000000Z"}
        await watching.save(tx, made["id"], spend)
    (hold,) = (await tenant.get(f"/v1/evaluations/{made['id']}"))["holds"]
    assert (hold["reason"], hold["agent_id"], hold["since"]) == ("judges_budget", None, spend["at"])
    assert "1.2 of 1 USD" in hold["detail"]


async def test_a_draft_cannot_be_held(tenant: Tenant) -> None:
    made = await draft(tenant)
    problem = await tenant.post(f"/v1/evaluations/{made['id']}/hold", {}, 409)
    assert problem["type"] == "urn:workstead:problem:evaluation_not_started"


async def test_the_log_has_pages(tenant: Tenant) -> None:
    made = await started(tenant)
    for name in "abc":
        await patch(tenant, made, {"name": name})
    whole = await log(tenant, made)
    seen: list[Any] = []
    path: str | None = f"/v1/evaluations/{made['id']}/log?limit=2"
    while path is not None:
        page = await tenant.get(path)
        seen += page["data"]
        path = page["next"]
    assert seen == whole
    assert len(whole) >= 4


async def test_the_matrix_has_a_cell_per_agent_and_task(tenant: Tenant) -> None:
    made = await started(tenant)
    mine = [r for r in await runs_of(tenant, made) if r["agent"]["id"] == made["agents"][0]["id"]]
    first, second = [r for r in mine if r["task"]["name"] == "t/a"]
    other = next(r for r in mine if r["task"]["name"] == "t/b")
    await end(tenant, first["id"], 0.5, wall_s=30.0)
    await end(tenant, second["id"], 1.0, wall_s=50.0, cost_usd_all_attempts=2)
    await end(tenant, other["id"], None)
    path = f"/v1/evaluations/{made['id']}/matrix"
    seen = await tenant.get(path)
    assert seen["columns"] == ["agent", "task", "runs", "counted", "mean", "phases", "outcomes"]
    assert [t["key"] for t in seen["tasks"]] == ["a", "b", "c"]
    assert len(seen["cells"]) == 6
    assert seen["cells"][0] == [0, 0, 2, 2, 0.75, {"done": 2}, {"graded": 2}]
    assert seen["cells"][1] == [0, 1, 2, 0, None, {"done": 1, "queued": 1}, {"ungraded": 1}]
    figures = seen["provisional"][0]
    assert (figures["runs"], figures["n"], figures["tasks"], figures["mean"], figures["pass_rate"]) == (
        6,
        2,
        1,
        0.75,
        0.5,
    )
    assert seen["provisional"][1]["mean"] is None
    assert seen["causes"][made["agents"][0]["label"]] == {"completed": 3}
    assert [r["run_id"] for r in seen["slowest"]] == [second["id"], first["id"]]
    assert [(r["run_id"], r["cost_usd"], r["task"]) for r in seen["dearest"]] == [(second["id"], "2", "a")]
    assert seen["silent"] == []


async def test_the_matrix_is_unchanged_until_a_run_is(tenant: Tenant) -> None:
    made = await started(tenant)
    path = f"/v1/evaluations/{made['id']}/matrix"
    tag = (await tenant.client.get(path)).headers["etag"]
    assert (await tenant.client.get(path, headers={"If-None-Match": tag})).status_code == 304
    one = (await runs_of(tenant, made))[0]
    async with tenant.state.db.transaction() as tx:
        await runs.update(tx, one["id"], score=0.5)
    assert (await tenant.client.get(path, headers={"If-None-Match": tag})).status_code == 200
    await tenant.get(f"{path}?silent=3", 422)


async def test_a_silent_run_is_listed(tenant: Tenant) -> None:
    made = await started(tenant)
    one = (await runs_of(tenant, made))[0]
    attempt = await tenant.start(one["id"])
    await tenant.say(attempt, "hello")
    async with tenant.state.db.transaction() as tx:
        await runs.update(tx, one["id"], last_event_at=one_hour_ago())
    seen = await tenant.get(f"/v1/evaluations/{made['id']}/matrix?silent_s=3000")
    assert [r["run_id"] for r in seen["silent"]] == [one["id"]]
    assert seen["silent"][0]["silent_s"] >= 3600
    assert (await tenant.get(f"/v1/evaluations/{made['id']}/matrix?silent_s=4000"))["silent"] == []


def one_hour_ago() -> datetime:
    return datetime.now(UTC) - timedelta(hours=1)


async def test_series_grow_by_agent_and_in_all(tenant: Tenant) -> None:
    price = {"amount": "100", "currency": "USD", "usd": "100", "basis": "posted"}
    made = await started(tenant, task_ids=[(await tenant.task(name="t/paid", price=price))["id"]])
    mine = [r for r in await runs_of(tenant, made) if r["agent"]["id"] == made["agents"][0]["id"]]
    await end(tenant, mine[0]["id"], 1.0, cost_usd_all_attempts=3)
    await end(tenant, mine[1]["id"], 0.5)
    path = f"/v1/evaluations/{made['id']}/series"
    wanted = "done,graded,earned_usd,spend_usd,score"
    seen = await tenant.get(f"{path}?metric={wanted}&by=agent&step_s=3600")
    (series,) = seen["series"]
    assert series["agent"] == made["agents"][0]["label"]
    last = {name: points[-1] for name, points in series["points"].items()}
    assert last == {
        "done": [3600, 2], "graded": [3600, 2], "earned_usd": [3600, 100], "spend_usd": [3600, 3], "score": [3600, 0.75],
    }  # fmt: skip
    (together,) = (await tenant.get(f"{path}?metric=done"))["series"]
    assert together["agent"] is None
    for query in ("metric=nothing", "metric=", "by=task", "step_s=0", "other=1"):
        await tenant.get(f"{path}?{query}", 422)


async def test_runs_are_made_void_and_taken_back(tenant: Tenant) -> None:
    made = await started(tenant)
    one, other, *_ = await runs_of(tenant, made)
    await end(tenant, one["id"], 0.5)
    body = {"filter": {"ids": [one["id"], other["id"]]}, "reason": "broken fixture"}
    dry = await tenant.post("/v1/runs:invalidate", body | {"dry_run": True}, 200)
    assert dry == {"matched": 2, "runs": 1, "more": False, "dry_run": True}
    assert (await tenant.get(f"/v1/runs/{one['id']}"))["outcome"] == "graded"
    said = await tenant.post("/v1/runs:invalidate", body, 200)
    assert (said["matched"], said["runs"]) == (2, 1)
    seen = await tenant.get(f"/v1/runs/{one['id']}")
    assert (seen["phase"], seen["outcome"], seen["verdict"]["score"]) == ("done", "invalidated", 0.5)
    assert (await tenant.get(f"/v1/evaluations/{made['id']}"))["counts"]["outcome"] == {"invalidated": 1}
    assert (await tenant.post("/v1/runs:invalidate", body, 200))["runs"] == 0
    last = (await tenant.get(f"/v1/runs/{one['id']}/events"))["data"][-1]
    assert (last["type"], last["payload"]["reason"], last["payload"]["was"]) == (
        "run.validity",
        "broken fixture",
        "graded",
    )
    said = await tenant.post("/v1/runs:revalidate", {"filter": {"evaluation_id": [made["id"]]}}, 200)
    assert said["runs"] == 1
    assert (await tenant.get(f"/v1/runs/{one['id']}"))["outcome"] == "graded"
    assert [e["action"] for e in await log(tenant, made)][-2:] == ["invalidate", "revalidate"]


async def test_what_is_void_counts_as_missing_and_is_redone(tenant: Tenant) -> None:
    made = await started(tenant)
    one = (await runs_of(tenant, made))[0]
    await end(tenant, one["id"], 0.0)
    await tenant.post("/v1/runs:invalidate", {"filter": {"ids": [one["id"]]}, "reason": "x"}, 200)
    again = await tenant.post(f"/v1/evaluations/{made['id']}/resume", {}, 200)
    assert again["changed"] == {"made": 1}


async def test_bulk_stops_say_how_many_and_what_is_meant_is_named(tenant: Tenant, other: Tenant) -> None:
    made = await started(tenant)
    foreign = await other.run()
    task = (await runs_of(tenant, made))[0]["task"]["id"]
    body = {"filter": {"evaluation_id": [made["id"]], "task_id": [task]}, "mode": "discard"}
    assert (await tenant.post("/v1/runs:stop", body | {"dry_run": True}, 200))["runs"] == 4
    assert (await tenant.post("/v1/runs:stop", body, 200))["runs"] == 4
    assert (await tenant.get(f"/v1/evaluations/{made['id']}"))["counts"]["phase"] == {"done": 4, "queued": 8}
    assert (await tenant.post("/v1/runs:stop", body, 200))["runs"] == 0
    nothing_named: list[Any] = [{}, {"ids": []}, {"labels": {}}]
    for meant in nothing_named:
        await tenant.post("/v1/runs:stop", {"filter": meant, "mode": "discard"}, 422)
    nothing = await tenant.post("/v1/runs:stop", {"filter": {"ids": [foreign["id"]]}, "mode": "discard"}, 200)
    assert nothing["matched"] == 0
    assert (await other.get(f"/v1/runs/{foreign['id']}"))["phase"] == "queued"


async def test_notes_are_written_found_and_taken_away(tenant: Tenant, other: Tenant) -> None:
    run = await tenant.run()
    path = f"/v1/runs/{run['id']}/notes"
    note = await tenant.post(path, {"body": "The Total is 100 % wrong_", "tags": ["math", "math", "look"], "seq": 1})
    assert (note["tags"], note["seq"]) == (["math", "look"], 1)
    plain = await tenant.post(path, {"tags": ["look"]})
    assert [n["id"] for n in (await tenant.get(path))["data"]] == [plain["id"], note["id"]]
    for query, found in (("tag=math", [note]), ("tag=look", [plain, note]), ("text=total IS", [note]), ("text=0 %25 w", [note]),
                         ("text=wrongx", []), ("tag=ma", []), ("tag=look&text=total", [note])):  # fmt: skip
        assert (await tenant.get(f"/v1/run-notes?{query}"))["data"] == found, query
    assert (await other.get("/v1/run-notes?tag=look"))["data"] == []
    for body in ({}, {"body": " "}, {"tags": ["a b"]}, {"body": "x", "seq": 99}):
        await tenant.post(path, body, 422)
    answer = await tenant.client.delete(f"{path}/{note['id']}")
    assert answer.status_code == 204
    assert (await tenant.client.delete(f"{path}/{note['id']}")).status_code == 404
    assert (await tenant.get("/v1/run-notes?tag=look"))["data"] == [plain]
