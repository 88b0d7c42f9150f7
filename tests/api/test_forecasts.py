"""``/v1/forecast-sets``: drafts with an estimate, start and cancel, rows with what came first, imports."""

from typing import Any

import pytest

from tests.api.helpers import Tenant

MODEL = "acme/oracle"
ROW = {"forecaster": "elsewhere", "p_hat": 0.3, "verifiability": 4, "declared_at": "2020-01-01T00:00:00Z"}


async def made(tenant: Tenant, **wish: Any) -> Any:
    await tenant.model(MODEL)
    plain: dict[str, Any] = {"name": "set", "forecasters": [{"model": MODEL}]}
    if "benchmark" not in wish:
        plain["task_ids"] = [(await tenant.task())["id"]]
    return await tenant.post("/v1/forecast-sets", plain | wish)


async def test_a_draft_says_what_it_will_take(tenant: Tenant) -> None:
    prompts = [{"variant": "limits", "reason": True}, {"variant": "only_2", "system": "tools"}, {"variant": "placebo"}]
    found = await made(tenant, prompts=prompts, labels={"week": "48"})
    assert (found["state"], found["total"], found["tasks"], found["ok"]) == ("draft", 3, 1, 0)
    assert found["estimate"]["forecasts"] == 3
    assert found["estimate"]["input_tokens"] > 500
    assert found["estimate"]["cost_usd"] is None  # nobody knows the model's price
    assert found["template"] == "forecast@1"
    assert found["cost_usd"] is None
    assert (await tenant.get(f"/v1/forecast-sets/{found['id']}"))["spec"]["prompts"][1]["system"] == "tools"
    listed = await tenant.get("/v1/forecast-sets?label.week=48&state=draft&total=true")
    assert (listed["total"], listed["data"][0]["id"]) == (1, found["id"])
    assert "spec" not in listed["data"][0]


async def test_once_for_a_key(tenant: Tenant) -> None:
    key = {"Idempotency-Key": "one"}
    task = await tenant.task()
    body = {"name": "set", "task_ids": [task["id"]]}
    answers = [await tenant.client.post("/v1/forecast-sets", json=body, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert (await tenant.get("/v1/forecast-sets?total=true"))["total"] == 1


async def test_items_of_a_benchmark_are_chosen_by_pattern_and_facet(tenant: Tenant) -> None:
    items = [
        {"key": f"{kind}-{n}", "task": {"name": f"t/{kind}{n}", "instruction": "work", "facets": {"kind": kind}}}
        for kind in ("a", "b")
        for n in range(3)
    ]
    source = {"importer": "made_up", "importer_version": "1"}
    manifest = {"name": "pw", "version": "1", "source": source, "items": items}
    benchmark = await tenant.post("/v1/benchmarks", {"manifest": manifest})
    whole = await made(tenant, benchmark="pw")
    assert (whole["tasks"], whole["benchmark_id"], whole["total"]) == (6, benchmark["id"], 12)
    facets = {"include": ["*-[01]"], "facets": {"kind": ["b"]}}
    some = await made(tenant, benchmark="pw@1", tasks=facets)
    assert some["tasks"] == 2
    brought = await tenant.post(
        f"/v1/forecast-sets/{some['id']}/forecasts", {"forecasts": [ROW | {"task": "b-1"}]}, 200
    )
    assert brought == {"new": 1, "known": 0}


async def test_started_cancelled_and_started_again(tenant: Tenant) -> None:
    found = await made(tenant)
    path = f"/v1/forecast-sets/{found['id']}"
    started = await tenant.post(f"{path}/start", {}, 200)
    assert started["state"] == "running"
    assert (await tenant.post(f"{path}/start", {}, 200))["operation_id"] == started["operation_id"]
    operation = await tenant.get(f"/v1/operations/{started['operation_id']}")
    assert (operation["kind"], operation["state"], operation["unit"]) == ("forecasts", "queued", "forecasts")
    cancelled = await tenant.post(f"{path}/cancel", None, 200)
    assert cancelled["state"] == "cancelled"
    assert (await tenant.get(f"/v1/operations/{started['operation_id']}"))["state"] == "cancelled"
    assert (await tenant.post(f"{path}/cancel", None, 200))["state"] == "cancelled"
    again = await tenant.post(f"{path}/start", {}, 200)
    assert again["operation_id"] != started["operation_id"]


async def test_brought_forecasts_are_marked_and_their_time_proves_nothing(tenant: Tenant) -> None:
    run = await tenant.run()
    about = {"agent": run["agent"]["id"]}
    found = await tenant.post("/v1/forecast-sets", {"name": "s", "task_ids": [run["task"]["id"]], "about": about})
    path = f"/v1/forecast-sets/{found['id']}/forecasts"
    row = ROW | {"task": run["task"]["id"]}
    assert await tenant.post(path, {"forecasts": [row]}, 200) == {"new": 1, "known": 0}
    assert await tenant.post(path, {"forecasts": [row, row | {"forecaster": "b"}]}, 200) == {"new": 1, "known": 1}
    one = (await tenant.get(f"{path}?forecaster=elsewhere"))["data"][0]
    assert (one["source"], one["state"], one["p_hat"], one["verifiability"]) == ("imported", "ok", 0.3, 4)
    assert one["declared_at"] == "2020-01-01T00:00:00.000Z"
    assert (one["first_attempt_at"], one["made_before_attempt"]) == (None, None)
    seen = await tenant.client.get(path)
    same = {"If-None-Match": seen.headers["etag"]}
    assert (await tenant.client.get(path, headers=same)).status_code == 304
    await tenant.start(run["id"])
    after = await tenant.client.get(path, headers=same)
    assert after.status_code == 200  # what is known of the attempt has changed
    assert {row["made_before_attempt"] for row in after.json()["data"]} == {True}
    late = await tenant.post(path, {"forecasts": [row | {"forecaster": "late"}]}, 200)
    assert late["new"] == 1
    (last,) = (await tenant.get(f"{path}?forecaster=late"))["data"]
    assert last["made_before_attempt"] is False
    whole = await tenant.get(f"/v1/forecast-sets/{found['id']}")
    assert (whole["ok"], whole["imported"], whole["total"]) == (3, 3, 0)


@pytest.mark.parametrize(
    ("changes", "status", "type"),
    [
        ({"forecasters": [{"model": "no/such"}]}, 422, "unknown_model"),
        ({"forecasters": [{"model": MODEL}, {"model": MODEL}]}, 422, "invalid_request"),
        ({"prompts": [{"variant": "drop_7"}]}, 422, "invalid_request"),
        ({"about": {"agent": "nobody"}}, 404, "agent_not_found"),
        ({"benchmark": "none", "task_ids": []}, 404, "benchmark_not_found"),
        ({"task_ids": ["task_none"]}, 404, "task_not_found"),
        ({"template": "forecast@9"}, 422, "unknown_template"),
    ],
)
async def test_what_cannot_be_asked_is_refused_at_once(
    tenant: Tenant, changes: dict[str, Any], status: int, type: str
) -> None:
    task = await tenant.task()
    await tenant.model(MODEL)
    body = {"name": "set", "task_ids": [task["id"]], "forecasters": [{"model": MODEL}]} | changes
    answer = await tenant.client.post("/v1/forecast-sets", json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["type"].rpartition(":")[2] == type


async def test_forecasts_outside_their_scales_are_refused(tenant: Tenant) -> None:
    found = await made(tenant)
    path = f"/v1/forecast-sets/{found['id']}/forecasts"
    for wrong in ({"p_hat": 1.1}, {"verifiability": 6}, {"task": "other"}, {"judged": True}):
        row = ROW | {"task": found["spec"]["task_ids"][0]} | wrong
        answer = await tenant.client.post(path, json={"forecasts": [row]})
        assert answer.status_code == 422, wrong
    assert (await tenant.get(path))["data"] == []


async def test_who_may_only_read_starts_nothing(tenant: Tenant) -> None:
    found = await made(tenant)
    reader = await tenant.token("runs:read")
    assert (await tenant.client.get("/v1/forecast-sets", headers=reader)).status_code == 200
    answer = await tenant.client.post(f"/v1/forecast-sets/{found['id']}/start", json={}, headers=reader)
    assert answer.status_code == 403
