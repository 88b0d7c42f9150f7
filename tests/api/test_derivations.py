"""``/v1/benchmarks/{id}/derive``: chosen by a rule, kept with it, found again, refused by name."""

from typing import Any

import pytest

from tests.api.helpers import Tenant

RULE = {"facets": {"kind": ["a", "b"]}, "sample": {"stratify": "kind", "per_stratum": 2}, "seed": 5}


async def parent(tenant: Tenant) -> Any:
    items = [
        {
            "key": f"{kind}{n}",
            "task": {
                "name": f"t/{kind}{n}",
                "instruction": "work",
                "facets": {"kind": kind},
                "price": {"amount": str(n), "currency": "USD", "usd": str(n), "basis": "posted"},
            },
        }
        for kind in "abc"
        for n in range(4)
    ]
    source = {"importer": "made_up", "importer_version": "1"}
    manifest = {"name": "whole", "version": "1", "source": source, "items": items, "policies": {"no_deliverable": "exclude"}}  # fmt: skip
    return await tenant.post("/v1/benchmarks", {"manifest": manifest})


async def test_a_part_keeps_its_rule_and_is_found_again(tenant: Tenant) -> None:
    whole = await parent(tenant)
    path = f"/v1/benchmarks/{whole['id']}/derive"
    body: dict[str, Any] = {"name": "part", "version": "1", "rule": RULE, "labels": {"for": "pilot"}}
    counted = await tenant.post(path, body | {"dry_run": True}, 200)
    assert (counted["fitting"], counted["taken"], counted["benchmark"]) == (8, 4, None)
    assert counted["strata"] == [{"name": "a", "fitting": 4, "taken": 2}, {"name": "b", "fitting": 4, "taken": 2}]
    assert (await tenant.get("/v1/benchmarks?name=part"))["data"] == []
    made = await tenant.post(path, body)
    part = made["benchmark"]
    assert (part["digest"], part["counts"]["ok"]) == (counted["digest"], 4)
    found = await tenant.get(f"/v1/benchmarks/{part['id']}")
    assert found["derived"]["parent"]["id"] == whole["id"]
    assert found["derived"]["rule"]["sample"]["per_stratum"] == 2
    assert found["head"]["policies"]["no_deliverable"] == "exclude"
    assert (await tenant.post(path, body, 200))["benchmark"]["id"] == part["id"]
    items = (await tenant.get(f"/v1/benchmarks/{part['id']}/items"))["data"]
    theirs = {
        one["key"]: one["task"]["id"] for one in (await tenant.get(f"/v1/benchmarks/{whole['id']}/items"))["data"]
    }
    assert all(theirs[one["key"]] == one["task"]["id"] for one in items)  # the same tasks, not copies
    cheap = {"name": "cheap", "version": "1", "rule": {"price": {"most_usd": "1"}}, "dry_run": True}
    assert (await tenant.post(path, cheap, 200))["taken"] == 6
    other = await tenant.client.post(path, json=body | {"rule": RULE | {"exclude": ["c*"]}})  # chooses the same
    assert (other.status_code, other.json()["type"].rpartition(":")[2]) == (409, "benchmark_version_taken")


@pytest.mark.parametrize(
    ("rule", "status", "type"),
    [
        ({"facets": {"kind": ["z"]}}, 422, "no_items"), ({"facets": {"kind@9": ["a"]}}, 404, "overlay_not_found"),
        ({"sample": {"stratify": "tone@1"}}, 404, "overlay_not_found"), ({"price": {"least_usd": "9"}}, 422, "no_items"),
        ({"sample": {"per_stratum": 1}}, 422, "invalid_request"), ({"made": "up"}, 422, "invalid_request"),
    ],
)  # fmt: skip
async def test_a_rule_that_chooses_nothing_is_refused(tenant: Tenant, rule: Any, status: int, type: str) -> None:
    path = f"/v1/benchmarks/{(await parent(tenant))['id']}/derive"
    answer = await tenant.client.post(path, json={"name": "part", "version": "1", "rule": rule})
    assert answer.status_code == status, answer.text
    assert answer.json()["type"].rpartition(":")[2] == type
