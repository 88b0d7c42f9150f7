"""Agents on scaffolds that come with the service."""

from tests.api.helpers import Tenant


async def test_registered_when_first_used(tenant: Tenant, other: Tenant) -> None:
    agent = await tenant.post("/v1/agents", {"scaffold": "codex@0.171.0", "label": "c"})
    scaffold = await tenant.get(f"/v1/scaffolds/{agent['scaffold_id']}")
    assert (scaffold["name"], scaffold["manifest"]["kit"]) == ("codex", "kits/codex")
    again = await tenant.post("/v1/agents", {"scaffold": "codex@0.171.0", "label": "d", "settings": {"effort": "high"}})
    assert again["scaffold_id"] == agent["scaffold_id"]
    await other.get("/v1/scaffolds/codex@0.171.0", 404)


async def test_latest_becomes_a_version(tenant: Tenant) -> None:
    agent = await tenant.post("/v1/agents", {"scaffold": "codex@latest"})
    assert agent["scaffold"] == "codex@0.171.0"
    await tenant.post("/v1/scaffolds", {"name": "codex", "version": "0.200.0", "kind": "codex", "kit": "kits/codex"})
    assert (await tenant.post("/v1/agents", {"scaffold": "codex@latest"}))["scaffold"] == "codex@0.200.0"


async def test_the_projects_own_wins(tenant: Tenant) -> None:
    body = {"name": "codex", "version": "0.171.0", "kind": "command", "argv": ["true"]}
    own = await tenant.post("/v1/scaffolds", body)
    agent = await tenant.post("/v1/agents", {"scaffold": "codex@latest"})
    assert agent["scaffold_id"] == own["id"]


async def test_what_is_not_shipped_is_not_found(tenant: Tenant) -> None:
    for reference in ("codex@0.1", "solver@latest"):
        problem = await tenant.post("/v1/agents", {"scaffold": reference}, 404)
        assert problem["type"] == "urn:workstead:problem:scaffold_not_found"


async def test_shipped_ones_are_listed_before_they_are_used(tenant: Tenant) -> None:
    listed = (await tenant.get("/v1/scaffold-catalogue"))["data"]
    assert {"claude-code", "codex", "gemini-cli"} <= {row["name"] for row in listed}
    kits = {row["name"]: row["kit"] for row in listed if row["kit"] is not None}
    assert all(kit.startswith("kits/") for kit in kits.values())
    assert kits["codex"] == "kits/codex"
    assert (await tenant.get("/v1/scaffolds"))["data"] == []


async def test_a_run_without_a_model_is_refused_at_submission(tenant: Tenant) -> None:
    task, agent = await tenant.task(), await tenant.post("/v1/agents", {"scaffold": "codex@latest"})
    problem = await tenant.post("/v1/runs", {"task": task["id"], "agent": agent["id"]}, 422)
    assert problem["type"] == "urn:workstead:problem:model_missing"
