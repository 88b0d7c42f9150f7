"""``/v1/benchmarks/{id}/embeddings``: an operation once, what there is, who may."""

from typing import Any

import pytest
from sqlalchemy import insert

from service.store.tables_embeddings import embeddings
from tests.api.helpers import Tenant

MODEL = "acme/vectors"


async def benchmark(tenant: Tenant) -> Any:
    await tenant.model(MODEL)
    items = [{"key": f"i{n}", "task": {"name": f"t/{n}", "instruction": f"work {n}"}} for n in range(3)]
    source = {"importer": "made_up", "importer_version": "1"}
    manifest = {"name": "pw", "version": "1", "source": source, "items": items}
    return await tenant.post("/v1/benchmarks", {"manifest": manifest})


async def test_asked_again_while_it_is_under_way_it_is_the_same_operation(tenant: Tenant) -> None:
    path = f"/v1/benchmarks/{(await benchmark(tenant))['id']}/embeddings"
    first = await tenant.post(path, {"model": MODEL}, 202)
    assert (first["kind"], first["state"], first["unit"]) == ("embeddings", "queued", "tasks")
    assert (await tenant.post(path, {"model": MODEL, "dimensions": 256}, 202))["id"] == first["id"]
    other = await tenant.post(path, {"model": MODEL, "dimensions": 0}, 202)
    assert other["id"] != first["id"]
    await tenant.client.post(f"/v1/operations/{first['id']}/cancel")
    assert (await tenant.post(path, {"model": MODEL}, 202))["id"] != first["id"]


async def test_what_there_is_by_model_and_length(tenant: Tenant) -> None:
    made = await benchmark(tenant)
    path = f"/v1/benchmarks/{made['id']}/embeddings"
    assert await tenant.get(path) == {"data": []}
    tasks = [one["task"]["id"] for one in (await tenant.get(f"/v1/benchmarks/{made['id']}/items"))["data"]]
    outside = (await tenant.task())["id"]
    rows = [
        {"project_id": tenant.project_id, "task_id": task, "model": model, "asked_dimensions": asked, "vector": vector,
         "text_sha256": "0" * 64, "operation_id": "op_1"}
        for model, asked, vector, those in (
            (MODEL, 0, [0.5, 0.5, 0.5], tasks), (MODEL, 2, [1.0, 0.0], [*tasks[:2], outside]), ("a", 1, [1.0], tasks[:1]),
        )
        for task in those
    ]  # fmt: skip
    async with tenant.state.db.transaction() as tx:
        await tx.execute(insert(embeddings), rows)
    assert (await tenant.get(path))["data"] == [
        {"model": "a", "asked_dimensions": 1, "length": 1, "tasks": 1},
        {"model": MODEL, "asked_dimensions": 0, "length": 3, "tasks": 3},
        {"model": MODEL, "asked_dimensions": 2, "length": 2, "tasks": 2},
    ]


@pytest.mark.parametrize(
    ("body", "type"),
    [
        ({"model": "no/such"}, "model_not_found"), ({"model": "talks"}, "model_has_no_embeddings"), ({}, "invalid_request"),
        ({"model": MODEL, "dimensions": 1025}, "invalid_request"), ({"model": MODEL, "length": 3}, "invalid_request"),
    ],
)  # fmt: skip
async def test_what_cannot_be_made_is_refused_at_once(tenant: Tenant, body: dict[str, Any], type: str) -> None:
    made = await benchmark(tenant)
    talks = {
        "name": "talks",
        "provider": "a",
        "upstream_id": "one",
        "dialect": "anthropic",
        "base_url": "https://a.example.com",
    }
    await tenant.post("/v1/models", talks)
    answer = await tenant.client.post(f"/v1/benchmarks/{made['id']}/embeddings", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["type"].rpartition(":")[2] == type
    assert (await tenant.get("/v1/operations?kind=embeddings"))["data"] == []


async def test_of_a_benchmark_that_is_not_there(tenant: Tenant) -> None:
    await tenant.get("/v1/benchmarks/bench_none/embeddings", 404)
    await tenant.model(MODEL)
    await tenant.post("/v1/benchmarks/bench_none/embeddings", {"model": MODEL}, 404)


async def test_who_may_only_read_spends_nothing(tenant: Tenant) -> None:
    path = f"/v1/benchmarks/{(await benchmark(tenant))['id']}/embeddings"
    reader = await tenant.token("benchmarks:read", "runs:read")
    assert (await tenant.client.get(path, headers=reader)).status_code == 200
    assert (await tenant.client.post(path, json={"model": MODEL}, headers=reader)).status_code == 403
