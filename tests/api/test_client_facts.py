"""Facts of simulated clients: who may have them made, who may see them, and which runs need them."""

from typing import Any

import pytest

from service.domain.operations import OperationState
from service.lifecycle.client_facts import TEMPLATE
from service.store import client_facts, operations
from service.store.client_facts import NewFacts, Recipe
from tests.api.helpers import Tenant

CLIENT = {"max_messages": 3, "model": "acme/client"}


async def a_task(tenant: Tenant, **client: Any) -> str:
    await tenant.model("acme/client")
    return str((await tenant.task(name="t/client", client=CLIENT | client))["id"])


async def made(tenant: Tenant, task_id: str, text: bytes = b"- The year is 1987.\n") -> None:
    """As the operation would: the facts are there."""
    blobs = [tenant.state.blobs.store_bytes(part) for part in (text, b"template", b"prompt")]
    facts, template, prompt = blobs
    new = NewFacts(facts, template, prompt, Recipe("acme/client", TEMPLATE, 1), "acme-1", None, "tok_x", "op_x")
    async with tenant.state.db.transaction() as tx:
        await client_facts.put(tx, tenant.project_id, task_id, new)


async def refused(tenant: Tenant, path: str, body: Any, status: int, type: str) -> None:
    found = await tenant.post(path, body, status)
    assert found["type"] == f"urn:workstead:problem:{type}"


async def test_they_are_made_once_by_an_operation(tenant: Tenant) -> None:
    task = await a_task(tenant)
    path = f"/v1/tasks/{task}/client-facts"
    begun = await tenant.post(path, {}, 202)
    assert (begun["kind"], begun["state"], begun["unit"]) == ("client_facts", "queued", "sheets")
    assert (await tenant.post(path, {"model": "acme/client", "seed": 1}, 202))["id"] == begun["id"]
    await refused(tenant, path, {"seed": 2}, 409, "client_facts_under_way")
    async with tenant.state.db.transaction() as tx:
        await operations.finish(tx, begun["id"], OperationState.FAILED, problem={"type": "x", "status": 500})
    again = await tenant.post(path, {}, 202)
    assert again["id"] != begun["id"]
    await made(tenant, task)
    async with tenant.state.db.transaction() as tx:
        await operations.finish(tx, again["id"], OperationState.SUCCEEDED, result={})
    assert (await tenant.post(path, {}, 202))["id"] == again["id"]
    await refused(tenant, path, {"seed": 2}, 409, "client_facts_exist")


async def test_what_cannot_be_made_is_refused_at_once(tenant: Tenant) -> None:
    task = await a_task(tenant)
    path = f"/v1/tasks/{task}/client-facts"
    await refused(tenant, path, {"model": "no/such"}, 422, "model_not_found")
    await refused(tenant, path, {"template": "client_facts@9"}, 422, "unknown_template")
    await refused(tenant, path, {"seed": -1}, 422, "invalid_request")
    await refused(tenant, f"/v1/tasks/{await a_task(tenant, model=None)}/client-facts", {}, 422, "client_model_needed")
    plain = (await tenant.task())["id"]
    await refused(tenant, f"/v1/tasks/{plain}/client-facts", {}, 404, "no_client")
    opaque = {"name": "acme/opaque", "provider": "acme", "upstream_id": "x", "dialect": "opaque"}
    await tenant.post("/v1/models", opaque | {"base_url": "https://api.acme.example.com"})
    await refused(tenant, path, {"model": "acme/opaque"}, 422, "dialect_without_client")


@pytest.mark.fault(62)
async def test_only_those_with_the_scope_see_them(tenant: Tenant) -> None:
    task = await a_task(tenant)
    path = f"/v1/tasks/{task}/client-facts"
    missing = await tenant.get(path, 404)
    assert missing["type"].endswith(":client_facts_missing")
    await made(tenant, task)
    found = await tenant.get(path)
    assert (found["source"], found["text"], found["author"]) == ("generated", "- The year is 1987.\n", "tok_x")
    assert (found["model"], found["reported_model"], found["template"]) == ("acme/client", "acme-1", TEMPLATE)
    assert found["sha256"].startswith("sha256:")
    for name in ("sha256", "template_sha256", "prompt_sha256"):
        digest = found[name].removeprefix("sha256:")
        assert (await tenant.client.get(f"/v1/blobs/{digest}")).status_code == 200
    reader = await tenant.token("tasks:read", "tasks:write", "runs:read", "runs:write", "runs:debug", "runs:drive")
    answer = await tenant.client.get(path, headers=reader)
    assert (answer.status_code, answer.json()["scope"]) == (403, "hidden:read")
    writer = await tenant.token("tasks:write")
    assert (await tenant.client.post(path, json={}, headers=writer)).status_code == 403
    runner = await tenant.token("runs:write")
    assert (await tenant.client.post(path, json={}, headers=runner)).status_code == 403


async def test_imported_ones_are_seen_and_not_made(tenant: Tenant) -> None:
    await tenant.model("acme/client")
    digest = await tenant.blob(b"The year is 1987.")
    hidden = [{"path": "client.md", "sha256": digest, "size_bytes": 17}]
    task = (await tenant.task(name="t/imported", hidden=hidden, client={"facts": "client.md"}))["id"]
    found = await tenant.get(f"/v1/tasks/{task}/client-facts")
    assert (found["source"], found["path"], found["text"]) == ("imported", "client.md", "The year is 1987.")
    assert found["model"] is None
    assert found["created_at"] is None
    await refused(tenant, f"/v1/tasks/{task}/client-facts", {"model": "acme/client"}, 409, "client_facts_imported")
    large = [{"path": "client.md", "sha256": digest, "size_bytes": (1 << 20) + 1}]
    body = {"name": "t/large", "instruction": "x", "hidden": large, "client": {"facts": "client.md"}}
    assert "1048576 bytes" in str(await tenant.post("/v1/tasks", body, 422))


async def an_agent(tenant: Tenant, kind: str, **more: Any) -> str:
    await tenant.model("acme/one")
    await tenant.client.post("/v1/scaffolds", json={"name": kind, "version": "1", "kind": kind})
    found = await tenant.client.post("/v1/agents", json={"scaffold": f"{kind}@1"} | more)
    return str(found.json()["id"])


async def test_a_run_whose_client_knows_nothing_is_refused(tenant: Tenant) -> None:
    task = await a_task(tenant)
    remote = await an_agent(tenant, "remote")
    loop = await an_agent(tenant, "tool_agent", model="acme/one")
    for agent in (remote, loop):
        problem = await tenant.post("/v1/runs", {"task": task, "agent": agent}, 422)
        assert problem["type"].endswith(":client_facts_missing")
        assert f"workstead tasks facts make {task}" in problem["detail"]
    # Nobody there asks the client.
    for kind in ("nop", "single_response", "person", "external"):
        model = {"model": "acme/one"} if kind == "single_response" else {}
        await tenant.post("/v1/runs", {"task": task, "agent": await an_agent(tenant, kind, **model)})
    manual = {"task": task, "agent": await an_agent(tenant, "nop"), "manual": True}
    await refused(tenant, "/v1/runs", manual, 422, "client_facts_missing")
    await made(tenant, task)
    await tenant.post("/v1/runs", {"task": task, "agent": loop})
    nobody = await a_task(tenant, model=None)
    await refused(tenant, "/v1/runs", {"task": nobody, "agent": remote}, 422, "client_model_needed")
    other = await a_task(tenant, model="no/such")
    await refused(tenant, "/v1/runs", {"task": other, "agent": remote}, 422, "model_not_found")
