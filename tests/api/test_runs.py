"""The run resource: its shape, lists, conditional and waiting reads, stop, delete."""

import asyncio
import re
import time

import httpx
import pytest

from service.store import runs
from tests.api.helpers import Tenant

MEMBERS = {
    "id", "revision", "phase", "hold", "outcome", "ended_because", "evaluation_id", "task", "agent", "sample",
    "attempt", "derived_from", "created_at", "started_at", "ended_at", "graded_at", "updated_at", "deadline_at",
    "queue_s", "provision_s", "wall_s", "working_s", "provider_wait_s", "progress", "usage", "resources",
    "deliverable", "verdict", "flags", "labels",
}  # fmt: skip
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")


async def test_a_new_run_has_every_member(tenant: Tenant) -> None:
    run = await tenant.run(labels={"week": "48"}, sample=2)
    assert set(run) >= MEMBERS
    assert run["id"].startswith("run_")
    assert (run["phase"], run["outcome"], run["attempt"], run["sample"]) == ("queued", None, 0, 2)
    assert TIME.match(run["created_at"])
    assert run["task"]["digest"].startswith("sha256:")
    assert run["usage"]["cost_usd"] is None
    assert run["usage"]["cost_basis"] == "unknown"
    assert run["usage"]["input_tokens"] is None
    assert run["verdict"] == {
        "state": "pending", "plan": "task@1", "score": None, "max_score": None, "fraction": None, "graded_at": None,
    }  # fmt: skip
    assert run["labels"] == {"week": "48"}
    found = await tenant.get(f"/v1/runs/{run['id']}")
    assert found.pop("hold")["reason"]  # worked out where one run is read
    assert found == {k: v for k, v in run.items() if k != "hold"}


async def test_clocks_of_a_running_run(tenant: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    await tenant.say(attempt, "hello")
    now = await tenant.get(f"/v1/runs/{run['id']}")
    assert (now["phase"], now["attempt"]) == ("running", 1)
    assert 0 <= now["wall_s"] < 60
    assert 0 <= now["progress"]["silent_s"] < 60
    assert now["deadline_at"] > now["started_at"]


async def test_etag_is_the_revision_and_saves_the_body(tenant: Tenant) -> None:
    run = await tenant.run()
    await tenant.start(run["id"])
    path = f"/v1/runs/{run['id']}"
    first = await tenant.client.get(path)
    tag = first.headers["etag"]
    assert tag == f'"{first.json()["revision"]}"'
    assert first.headers["cache-control"].startswith("private, max-age=")
    same = await tenant.client.get(path, headers={"If-None-Match": tag})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    async with tenant.state.db.transaction() as tx:
        await runs.add_flags(tx, run["id"], ["assisted"])
    changed = await tenant.client.get(path, headers={"If-None-Match": tag})
    assert (changed.status_code, changed.json()["flags"]) == (200, ["assisted"])
    assert changed.headers["etag"] != tag


async def test_304_is_only_for_who_may_read(tenant: Tenant, other: Tenant, anonymous: httpx.AsyncClient) -> None:
    run = await tenant.run()
    path = f"/v1/runs/{run['id']}"
    tag = {"If-None-Match": f'"{run["revision"]}"'}
    assert (await other.client.get(path, headers=tag)).status_code == 404
    assert (await anonymous.get(path, headers=tag)).status_code == 401
    assert (await anonymous.get(path, headers=tag | await tenant.token("tasks:read"))).status_code == 403
    forged = {"Authorization": f"Bearer {tenant.secret[:12]}_{'A' * 43}"}
    assert (await anonymous.get(path, headers=tag | forged)).status_code == 401


async def test_list_filters_sorts_and_pages(tenant: Tenant) -> None:
    made = [(await tenant.run(labels={"n": str(i % 2)}))["id"] for i in range(5)]
    await tenant.start(made[0])

    async def ids(query: str) -> list[str]:
        return [r["id"] for r in (await tenant.get(f"/v1/runs?{query}"))["data"]]

    assert await ids("sort=created_at") == made
    assert await ids("") == made[::-1]
    assert await ids("label.n=1&sort=created_at") == [made[1], made[3]]
    assert await ids(f"ids={made[2]},{made[4]}&sort=created_at") == [made[2], made[4]]
    assert await ids("phase=done") == []
    assert len(await ids("phase=running")) == 1
    assert len(await ids("phase=provisioning&phase=running")) == 5
    seen: list[str] = []
    link = "/v1/runs?limit=2&sort=created_at&total=true"
    while link:
        page = await tenant.get(link)
        assert page["total"] == 5
        seen += [r["id"] for r in page["data"]]
        link = page["next"]
    assert seen == made
    few = await tenant.get("/v1/runs?fields=phase,progress")
    assert set(few["data"][0]) == {"id", "phase", "progress"}
    assert "total" not in few


@pytest.mark.parametrize(
    ("query", "type_"),
    [
        ("limit=501", "invalid_request"),
        ("limit=0", "invalid_request"),
        ("phas=done", "unknown_filter"),
        ("sort=phase", "unknown_sort"),
        ("fields=secret", "unknown_field"),
        ("cursor=AAAA", "bad_cursor"),
        ("ids=" + ",".join("x" * 3 for _ in range(201)), "too_many_ids"),
        ("created_after=yesterday", "invalid_request"),
        ("label.a=1&label.a=2", "bad_filter"),
        ("phase=%00", "invalid_request"),
    ],
)
async def test_bad_queries_are_422(tenant: Tenant, query: str, type_: str) -> None:
    body = await tenant.get(f"/v1/runs?{query}", 422)
    assert body["type"] == f"urn:workstead:problem:{type_}"


async def test_a_cursor_fits_its_own_list_only(tenant: Tenant) -> None:
    for _ in range(3):
        await tenant.run()
    link = (await tenant.get("/v1/runs?limit=1"))["next"]
    cursor = link.partition("cursor=")[2]
    assert (await tenant.get(f"/v1/runs?limit=1&sort=created_at&cursor={cursor}", 422))["type"].endswith("bad_cursor")


async def test_long_poll_returns_on_change(tenant: Tenant) -> None:
    run = await tenant.run()
    path = f"/v1/runs/{run['id']}"
    waiting = asyncio.create_task(tenant.client.get(f"{path}?wait_s=20&until=change", timeout=30))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    started = time.monotonic()
    await tenant.start(run["id"])
    answer = await waiting
    assert time.monotonic() - started < 2.5
    assert answer.json()["revision"] > run["revision"]


async def test_long_poll_ends_with_time_and_with_the_end(tenant: Tenant) -> None:
    run = await tenant.run()
    path = f"/v1/runs/{run['id']}"
    started = time.monotonic()
    assert (await tenant.get(f"{path}?wait_s=0.3&until=graded"))["phase"] == "queued"
    assert 0.25 < time.monotonic() - started < 2
    await tenant.finish(run["id"])
    assert (await tenant.get(f"{path}?wait_s=30&until=graded"))["outcome"] == "ungraded"
    assert (await tenant.get(f"{path}?wait_s=30&until=ended"))["phase"] == "done"
    stale = await tenant.client.get(f"{path}?wait_s=30&until=change", headers={"If-None-Match": '"1"'})
    assert stale.status_code == 200
    assert (await tenant.get(f"{path}?wait_s=61", 422))["errors"][0]["pointer"] == "#/query/wait_s"


async def test_stop_and_delete(tenant: Tenant) -> None:
    run = await tenant.run()
    path = f"/v1/runs/{run['id']}"
    assert (await tenant.client.delete(path)).json()["type"].endswith("run_not_ended")
    stopped = await tenant.post(f"{path}/stop", {"mode": "discard"}, 200)
    assert (stopped["phase"], stopped["outcome"], stopped["ended_because"]) == ("done", "cancelled", "cancelled")
    again = await tenant.post(f"{path}/stop", {"mode": "collect"}, 200)
    assert again["revision"] == stopped["revision"]
    assert (await tenant.client.delete(path)).status_code == 204
    await tenant.get(path, 404)
    assert (await tenant.client.delete(path)).status_code == 404


@pytest.mark.fault(1, 60)
async def test_nothing_can_be_put_into_a_run_that_is_not_the_callers(tenant: Tenant, other: Tenant) -> None:
    task, agent = await tenant.task(), await tenant.agent()
    good = {"task": task["id"], "agent": agent["id"]}
    for extra in (
        {"project_id": other.project_id}, {"phase": "done"}, {"outcome": "graded"}, {"score": 1.0}, {"revision": 9},
        {"privileged": True}, {"limits": {"cap_add": ["ALL"]}}, {"binds": ["/:/host"]}, {"cost_usd": "0"},
        {"id": "run_1"}, {"labels": {"a": {"privileged": True}}},
    ):  # fmt: skip
        body = await tenant.post("/v1/runs", good | extra, 422)
        assert body["type"].rpartition(":")[2] in ("invalid_request", "bad_limits"), extra
    for path in ("/v1/tasks", "/v1/scaffolds", "/v1/agents", "/v1/tokens"):
        await tenant.post(path, {"project_id": other.project_id, "privileged": True}, 422)
    assert (await tenant.get("/v1/runs"))["data"] == []


async def test_agents_and_tasks_of_others_cannot_be_used(tenant: Tenant, other: Tenant) -> None:
    task, agent = await tenant.task(), await tenant.agent()
    theirs_task, theirs_agent = await other.task(name="t/theirs"), await other.agent("2")
    await tenant.post("/v1/runs", {"task": theirs_task["id"], "agent": agent["id"]}, 404)
    await tenant.post("/v1/runs", {"task": task["id"], "agent": theirs_agent["id"]}, 404)
