"""Hosts and projects: only operators see them; what they change counts at once."""

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from service.api.state import ApiState
from service.store import attempts, hosts, projects, tokens
from service.store.rows import AttemptRow, HostRow
from tests.api.apps import app_of
from tests.api.helpers import BASE, Tenant

GIB = 1 << 30
FACTS = {
    "version": "1", "cpus": 8, "memory_total_bytes": 9 * GIB, "memory_usable_bytes": 8 * GIB, "disk_free_bytes": 90 * GIB,
    "disk_total_bytes": 100 * GIB, "disk_watermark_bytes": 10 * GIB,
}  # fmt: skip


@pytest.fixture
async def host(state: ApiState) -> HostRow:
    """A host that no other test uses, with the one environment that no other host has."""
    name = secrets.token_hex(6)
    async with state.db.transaction() as tx:
        return await hosts.register(tx, HostRow(f"host-{name}", "epoch", 2, ("runc",), (name,), facts=FACTS))


@pytest.fixture
async def operator(state: ApiState) -> AsyncIterator[Tenant]:
    """The project ``default`` with a token of all scopes."""
    async with state.db.transaction() as tx:
        project = await projects.get_default(tx)
        _, secret = await tokens.mint(tx, project.id, ["admin"])
    transport = httpx.ASGITransport(app_of(state), raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers) as client:
        yield Tenant(state, project.id, client, secret)


async def patch(one: Tenant, path: str, body: Any, status: int = 200) -> Any:
    answer = await one.client.patch(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def reasons(host: Any) -> list[Any]:
    """Without what other tests' runs miss on it: they wait in the same instance."""
    return [one for one in host["reasons"] if one["reason"] != "image_missing"]


async def claim(state: ApiState, host: HostRow) -> list[AttemptRow]:
    async with state.db.transaction() as tx:
        return await attempts.claim(tx, host, host.slots)


async def test_only_operators_see_the_instance(tenant: Tenant, operator: Tenant, host: HostRow) -> None:
    paths = ("/v1/hosts", f"/v1/hosts/{host.id}", "/v1/projects", f"/v1/projects/{tenant.project_id}")
    lesser = await operator.token("runs:read", "runs:write", "hidden:read")
    for path in paths:
        assert (await operator.client.get(path)).status_code == 200
        foreign = await tenant.client.get(path)
        assert (foreign.status_code, foreign.json()["type"]) == (404, "urn:workstead:problem:not_found")
        assert (await operator.client.get(path, headers=lesser)).status_code == 403
    for method, path, body in (
        ("PATCH", f"/v1/hosts/{host.id}", {"cordoned": True}),
        ("POST", f"/v1/hosts/{host.id}/drain", {}),
        ("PATCH", f"/v1/projects/{tenant.project_id}", {"max_runs": None}),
        ("POST", "/v1/projects", {"name": "mine"}),
    ):
        assert (await tenant.client.request(method, path, json=body)).status_code == 404, path
    assert (await operator.get(f"/v1/hosts/{host.id}"))["cordoned"] is False


async def test_a_host_shows_what_is_left_of_it(tenant: Tenant, operator: Tenant, host: HostRow) -> None:
    task = await tenant.task(
        name="t/room", environment=host.environments[0], limits={"memory_bytes": GIB, "disk_bytes": GIB}
    )
    run = await tenant.post("/v1/runs", {"task": task["id"], "agent": (await tenant.agent())["id"]})
    assert [a.run_id for a in await claim(tenant.state, host)] == [run["id"]]
    shown = await operator.get(f"/v1/hosts/{host.id}")
    assert (shown["state"], shown["slots"], shown["used"], shown["cpus"]) == ("up", 2, 1, 8)
    assert shown["memory"] == {"total_bytes": 9 * GIB, "usable_bytes": 8 * GIB, "promised_bytes": GIB}
    assert shown["disk"] == {
        "free_bytes": 90 * GIB, "total_bytes": 100 * GIB, "watermark_bytes": 10 * GIB, "promised_bytes": GIB,
    }  # fmt: skip
    assert reasons(shown) == []
    assert 0 <= shown["heartbeat_age_s"] < 60
    assert host.id in [h["id"] for h in (await operator.get("/v1/hosts"))["data"]]
    full = replace(host, facts=FACTS | {"disk_free_bytes": 3 * GIB, "memory_usable_bytes": GIB})
    async with tenant.state.db.transaction() as tx:
        await hosts.register(tx, full)
    found = {r["reason"]: r["detail"] for r in reasons(await operator.get(f"/v1/hosts/{host.id}"))}
    assert found == {
        "waiting_for_disk": "the disk has 3 GiB free, and 10 GiB are kept free",
        "waiting_for_memory": "1 GiB of memory are promised to live runs",
    }


async def test_cordon_limit_and_drain_count_at_once(tenant: Tenant, operator: Tenant, host: HostRow) -> None:
    path = f"/v1/hosts/{host.id}"
    task = await tenant.task(name="t/cordon", environment=host.environments[0])
    agent = await tenant.agent()
    runs = [await tenant.post("/v1/runs", {"task": task["id"], "agent": agent["id"]}) for _ in range(3)]
    changed = await patch(operator, path, {"cordoned": True, "labels": {"rack": "7"}})
    assert (changed["cordoned"], changed["labels"], changed["slots_limit"]) == (True, {"rack": "7"}, None)
    assert [r["reason"] for r in reasons(changed)] == ["cordoned"]
    assert await claim(tenant.state, host) == []
    changed = await patch(operator, path, {"cordoned": False, "slots_limit": 1})
    assert changed["labels"] == {"rack": "7"}
    assert [a.run_id for a in await claim(tenant.state, host)] == [runs[0]["id"]]
    assert await claim(tenant.state, host) == []
    assert [r["detail"] for r in reasons(await operator.get(path))] == ["1 of 1 slots are taken"]
    drained = await operator.post(f"{path}/drain", {"stop_worker": True}, 200)
    assert (drained["state"], drained["cordoned"]) == ("draining", True)
    async with tenant.state.db.transaction() as tx:
        assert await hosts.beat(tx, host.id, host.epoch, {"cpus": 9}) == "draining"
    await patch(operator, path, {"slots_limit": None})
    assert await claim(tenant.state, host) == []
    back = await patch(operator, path, {"cordoned": False})
    assert (back["state"], back["cpus"]) == ("up", 9)
    assert len(await claim(tenant.state, host)) == 2


async def test_what_operators_set_outlives_the_worker(operator: Tenant, host: HostRow) -> None:
    path = f"/v1/hosts/{host.id}"
    await patch(operator, path, {"cordoned": True, "slots_limit": 1, "labels": {"rack": "8"}})
    async with operator.state.db.transaction() as tx:
        await hosts.register(tx, replace(host, epoch="next"))
    kept = await operator.get(path)
    assert (kept["cordoned"], kept["slots_limit"], kept["labels"]) == (True, 1, {"rack": "8"})
    for body in ({"slots_limit": -1}, {"cordoned": None}, {"slots": 4}, {"labels": {"a": 1}}):
        await patch(operator, path, body, 422)
    async with operator.state.db.transaction() as tx:
        await hosts.change(tx, host.id, state="lost")
    lost = await operator.client.post(f"{path}/drain", json={"stop_worker": True})
    assert (lost.status_code, lost.json()["type"]) == (409, "urn:workstead:problem:host_lost")


async def test_projects_are_made_and_limited(operator: Tenant, tenant: Tenant) -> None:
    name = f"made-{tenant.project_id[-8:].lower()}"
    made = await operator.post("/v1/projects", {"name": name, "untrusted": True, "max_runs": 3})
    assert (made["name"], made["untrusted"], made["max_runs"]) == (name, True, 3)
    assert await operator.get(f"/v1/projects/{made['id']}") == made
    assert made in (await operator.get("/v1/projects?limit=500"))["data"]
    again = await operator.client.post("/v1/projects", json={"name": name})
    assert (again.status_code, again.json()["type"]) == (409, "urn:workstead:problem:project_exists")
    changed = await patch(operator, f"/v1/projects/{made['id']}", {"max_runs": None})
    assert (changed["max_runs"], changed["untrusted"]) == (None, True)
    await patch(operator, f"/v1/projects/{made['id']}", {"max_runs": -1}, 422)
    await patch(operator, "/v1/projects/prj_none", {"max_runs": 1}, 404)
    for bad in ("", "Ü", "a b", "-x"):
        assert (await operator.client.post("/v1/projects", json={"name": bad})).status_code == 422


async def test_a_queued_run_says_why_it_waits(tenant: Tenant, operator: Tenant, host: HostRow) -> None:
    task = await tenant.task(name="t/why", environment=host.environments[0], limits={"memory_bytes": 6 * GIB})
    agent = await tenant.agent()

    async def submit(**more: Any) -> str:
        return (await tenant.post("/v1/runs", {"task": task["id"], "agent": agent["id"]} | more))["id"]

    first, second, third = await submit(), await submit(), await submit(priority=100)

    async def hold(run_id: str = second) -> Any:
        return (await tenant.get(f"/v1/runs/{run_id}"))["hold"]

    waiting = await hold()
    assert (waiting["reason"], waiting["project_position"]) == ("waiting_for_slot", 3)
    assert waiting["since"].endswith("Z")
    assert [(await hold(r))["project_position"] for r in (third, first)] == [1, 2]
    assert (await hold(third))["position"] == 1
    assert [a.run_id for a in await claim(tenant.state, host)] == [third]
    waiting = await hold()
    assert (waiting["reason"], waiting["detail"]) == ("waiting_for_memory", "needs 6 GiB of memory, 2 GiB free")
    await patch(operator, f"/v1/projects/{tenant.project_id}", {"max_runs": 1})
    assert (await hold())["reason"] == "project_slots"
    await patch(operator, f"/v1/projects/{tenant.project_id}", {"max_runs": None})
    await patch(operator, f"/v1/hosts/{host.id}", {"cordoned": True})
    assert (await hold())["reason"] == "hosts_cordoned"
    assert (await tenant.get(f"/v1/runs/{third}"))["hold"] is None
    assert (await tenant.get("/v1/runs?phase=queued"))["data"][0]["hold"] is None


async def test_the_tag_of_a_queued_run_changes_with_what_is_shown(
    tenant: Tenant, operator: Tenant, host: HostRow
) -> None:
    task = await tenant.task(name="t/tag", environment=host.environments[0])
    agent = await tenant.agent()
    runs = [(await tenant.post("/v1/runs", {"task": task["id"], "agent": agent["id"]}))["id"] for _ in range(2)]
    path = f"/v1/runs/{runs[1]}"

    async def look(tag: str | None = None, query: str = "") -> httpx.Response:
        return await tenant.client.get(path + query, headers={} if tag is None else {"If-None-Match": tag})

    before = await look()
    tag = before.headers["etag"]
    assert (await look(tag)).status_code == 304
    assert (await look(tag, "?wait_s=0.2")).status_code == 304
    await patch(operator, f"/v1/hosts/{host.id}", {"slots_limit": 1})
    assert [a.run_id for a in await claim(tenant.state, host)] == [runs[0]]
    after = await look(tag, "?wait_s=20")
    assert after.status_code == 200
    assert after.json()["revision"] == before.json()["revision"]
    assert after.json()["hold"]["project_position"] == 1
    assert after.headers["etag"] != tag
    assert (await look(after.headers["etag"])).status_code == 304


async def test_priority_has_bounds(tenant: Tenant) -> None:
    task, agent = await tenant.task(), await tenant.agent()
    for priority in (-101, 101):
        body = {"task": task["id"], "agent": agent["id"], "priority": priority}
        assert (await tenant.client.post("/v1/runs", json=body)).status_code == 422


async def test_a_project_has_a_budget(operator: Tenant, other: Tenant) -> None:
    path = f"/v1/projects/{other.project_id}"
    seen = await patch(operator, path, {"budget": {"agents_usd": "50", "at_limit": "stop"}})
    assert seen["budget"] == {"agents_usd": "50", "judges_usd": None, "at_limit": "stop"}
    assert (seen["spend"], seen["max_runs"]) == ({}, None)
    await patch(operator, path, {"budget": {"agents_usd": "much"}}, 422)
    await patch(operator, path, {"max_runs": 3})
    assert (await operator.get(path))["budget"]["agents_usd"] == "50"
    assert (await patch(operator, path, {"budget": None}))["budget"] is None
