"""Conformance runs are asked for, refused and listed; they themselves are in tests/journeys."""

from typing import Any

from service.store import conformance
from tests.api.helpers import Tenant


async def scaffold(tenant: Tenant, **fields: Any) -> str:
    body = {"name": "tried", "version": "1", "kind": "command", "argv": ["true"], **fields}
    return str((await tenant.post("/v1/scaffolds", body))["id"])


async def test_it_is_an_operation_of_the_agents_kind(tenant: Tenant) -> None:
    await scaffold(tenant)
    answer = await tenant.client.post("/v1/scaffolds/tried@1/conformance", json={"quick": True})
    assert answer.status_code == 202
    body = answer.json()
    assert (body["kind"], body["state"], body["unit"]) == ("conformance", "queued", "cases")
    assert answer.headers["location"] == f"/v1/operations/{body['id']}"
    assert (await tenant.get(f"/v1/operations/{body['id']}"))["id"] == body["id"]


async def test_a_shipped_scaffold_is_registered_by_it(tenant: Tenant) -> None:
    await tenant.post("/v1/scaffolds/codex@latest/conformance", {}, 202)
    assert (await tenant.get("/v1/scaffolds/codex@latest/conformance"))["data"] == []
    assert (await tenant.get("/v1/scaffolds/codex@0.171.0"))["manifest"]["kind"] == "codex"


async def test_what_cannot_be_tried_is_refused_at_once(tenant: Tenant) -> None:
    id_ = await scaffold(tenant)
    problem = await tenant.post(f"/v1/scaffolds/{id_}/conformance", {"cases": ["nonsense"]}, 422)
    assert problem["type"] == "urn:workstead:problem:unknown_case"
    assert "success" in problem["cases"]
    await scaffold(tenant, name="by-hand", kind="person", argv=[])
    problem = await tenant.post("/v1/scaffolds/by-hand@1/conformance", {}, 422)
    assert problem["type"] == "urn:workstead:problem:no_conformance"
    await tenant.post("/v1/scaffolds/nobody@1/conformance", {}, 404)
    await tenant.post(f"/v1/scaffolds/{id_}/conformance", {"case": "success"}, 422)


async def test_the_newest_result_of_each_case_and_the_badge(tenant: Tenant, other: Tenant) -> None:
    id_ = await scaffold(tenant)
    assert (await tenant.get(f"/v1/scaffolds/{id_}"))["conformance"] is None
    detail = {
        "expected": "completes",
        "wrong": [],
        "seen": "it did\0",
        "argv": ["true"],
        "run_id": "run_x",
        "took_s": 1.5,
    }
    for result in ("fail", "pass"):
        async with tenant.state.db.transaction() as tx:
            await conformance.put(tx, tenant.project_id, id_, "success", result, detail)
    async with tenant.state.db.transaction() as tx:
        await conformance.put(tx, tenant.project_id, id_, "401", "skipped", {"expected": "ends"})
    listed = (await tenant.get("/v1/scaffolds/tried@1/conformance"))["data"]
    assert [(one["case"], one["result"]) for one in listed] == [("401", "skipped"), ("success", "pass")]
    assert (listed[1]["run_id"], listed[1]["argv"], listed[1]["detail"]["took_s"]) == ("run_x", ["true"], 1.5)
    badge = (await tenant.get(f"/v1/scaffolds/{id_}"))["conformance"]
    assert (badge["passed"], badge["failed"], badge["skipped"]) == (1, 0, 1)
    await other.get(f"/v1/scaffolds/{id_}/conformance", 404)
    async with tenant.state.db.reading() as tx:
        assert await conformance.list_for_scaffold(tx, other.project_id, id_) == []
