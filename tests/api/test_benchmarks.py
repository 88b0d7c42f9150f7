"""Benchmarks: made from a manifest, item by item, once; listed, labelled, checked, forgotten."""

import asyncio
import hashlib
import json
from typing import Any

import pytest
from sqlalchemy import text

from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.perform import perform
from service.store import operations
from tests.api.helpers import Tenant

SOURCE = {"importer": "made_up", "importer_version": "1"}


def item(key: str, **task: Any) -> dict[str, Any]:
    return {"key": key, "task": {"name": f"t/{key}", "instruction": f"do {key}", **task}}


def manifest(*items: dict[str, Any], **head: Any) -> dict[str, Any]:
    return {"name": "set", "version": "1", "source": SOURCE, "items": list(items), **head}


async def work_off(one: Tenant) -> None:
    """Do what the project has open, as the process of background jobs does."""
    async with one.state.db.reading() as tx:
        ids = await operations.open_ids(tx)
    for operation_id in ids:
        if (await one.client.get(f"/v1/operations/{operation_id}")).status_code == 200:
            await perform(OperationContext(one.state.db, one.state.blobs, first_pause_s=0.01), operation_id)


async def uploaded(tenant: Tenant, body: dict[str, Any]) -> str:
    return await tenant.blob(json.dumps(body).encode())


async def test_a_small_manifest_is_a_benchmark_at_once_and_once(tenant: Tenant) -> None:
    sha = await tenant.blob(b"seen")
    visible = [{"path": "a.txt", "sha256": sha, "size_bytes": 4}]
    body = manifest(
        item("one", visible=visible, facets={"occupation": "clerk", "tags": ["x", "y"], "n": 3}),
        item("two", facets={"occupation": "clerk"}),
        {"key": "three", "status": "quarantined", "problems": [{"type": "no_rubric", "where": "RUBRICS.json"}]},
        {**item("four"), "status": "disputed", "problems": [{"type": "contested"}]},
        labels={"week": "48"},
        notice="for research only",
    )
    made = await tenant.post("/v1/benchmarks", {"manifest": body})
    assert made["counts"] == {"items": 4, "ok": 2, "disputed": 1, "quarantined": 1, "checked": {}}
    assert made["facets"]["occupation"] == {"tasks": 2, "distinct": 1, "values": {"clerk": 2}}
    assert made["facets"]["tags"]["values"] == {"x": 1, "y": 1}
    assert made["facets"]["n"]["values"] == {"3": 1}
    assert made["head"]["notice"] == "for research only"
    assert made["labels"] == {"week": "48"}
    again = await tenant.post("/v1/benchmarks", {"manifest": body}, 200)
    assert again == made
    items = (await tenant.get(f"/v1/benchmarks/{made['id']}/items"))["data"]
    assert [(i["key"], i["status"], i["task"] is None) for i in items] == [
        ("one", "ok", False), ("two", "ok", False), ("three", "quarantined", True), ("four", "disputed", False),
    ]  # fmt: skip
    task = await tenant.get(f"/v1/tasks/{items[0]['task']['id']}")
    assert (task["name"], task["digest"]) == ("t/one", items[0]["task"]["digest"])
    one_alone = await tenant.post("/v1/tasks", body["items"][0]["task"], 200)
    assert one_alone["id"] == task["id"]
    async with tenant.state.db.reading() as tx:
        owners = text("SELECT owner_id FROM blob_refs WHERE digest = :sha AND owner_kind = 'task'")
        assert (await tx.execute(owners, {"sha": sha})).scalars().all() == [task["id"]]


async def test_the_same_name_with_another_content_is_refused(tenant: Tenant) -> None:
    first = await tenant.post("/v1/benchmarks", {"manifest": manifest(item("a"))})
    refused = await tenant.post("/v1/benchmarks", {"manifest": manifest(item("b"))}, 409)
    assert refused["type"].endswith(":benchmark_version_taken")
    assert refused["benchmark_id"] == first["id"]
    await tenant.post("/v1/benchmarks", {"manifest": manifest(item("b"), version="2")})
    assert len((await tenant.get("/v1/benchmarks?name=set"))["data"]) == 2


async def test_missing_files_are_named_and_nothing_is_made(tenant: Tenant) -> None:
    sha = hashlib.sha256(b"not there").hexdigest()
    body = manifest(item("a", hidden=[{"path": "h", "sha256": sha, "size_bytes": 9}]))
    refused = await tenant.post("/v1/benchmarks", {"manifest": body}, 422)
    assert (refused["type"].rsplit(":", 1)[1], refused["missing"]) == ("missing_blobs", [sha])
    assert (await tenant.get("/v1/benchmarks"))["data"] == []
    assert (await tenant.get("/v1/tasks"))["data"] == []
    await tenant.blob(b"not there")
    await tenant.post("/v1/benchmarks", {"manifest": body})


async def test_a_refused_task_costs_its_item_only(tenant: Tenant) -> None:
    sha = await tenant.blob(b"four")
    body = manifest(
        item("fine"),
        item("grader", graders=[{"method": "tea_leaves"}]),
        item("settings", graders=[{"method": "exact", "settings": {"nonsense": 1}}]),
        item("size", visible=[{"path": "a", "sha256": sha, "size_bytes": 5}]),
        item("path", visible=[{"path": "../up", "sha256": sha, "size_bytes": 4}]),
        item("field", privileged=True),
        item("text", facets={"x": "\ud800"}) | {"problems": [{"type": "noted"}]},
    )
    sent = json.dumps(body)
    made = (
        await tenant.client.post("/v1/benchmarks", content=sent, headers={"Content-Type": "application/json"})
    ).json()
    assert made["type"].endswith("json_bad_text")  # in the request itself; in an uploaded manifest it costs the item
    operation = await _import(tenant, sent.encode())
    found = (await tenant.get(f"/v1/benchmarks/{operation['result']['benchmark_id']}/items"))["data"]
    reasons = {i["key"]: [p["type"] for p in i["problems"]] for i in found}
    assert reasons == {
        "fine": [],
        "grader": ["unknown_grading_method"],
        "settings": ["bad_grader_settings"],
        "size": ["wrong_size"],
        "path": ["invalid_task"],
        "field": ["invalid_task"],
        "text": ["noted", "unstorable_text"],
    }
    assert [i["status"] for i in found] == ["ok"] + ["quarantined"] * 6
    assert all((i["task"] is None) == (i["key"] != "fine") for i in found)
    assert found[4]["problems"][0]["where"] == "task/visible/0/path"


async def _import(tenant: Tenant, data: bytes) -> dict[str, Any]:
    """Import an uploaded manifest by hand; return the operation as it ended."""
    sha = await tenant.blob(data)
    posting = asyncio.create_task(tenant.client.post("/v1/benchmarks", json={"manifest_sha256": sha}))
    operation_id = await _queued(tenant)
    await work_off(tenant)
    await posting
    return await tenant.get(f"/v1/operations/{operation_id}")


async def _queued(tenant: Tenant) -> str:
    async with asyncio.timeout(30):
        while True:
            found = (await tenant.get("/v1/operations?state=queued"))["data"]
            if found:
                return str(found[0]["id"])
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("data", "type_"),
    [
        (b"", "invalid_manifest"),
        (b"\xff", "invalid_manifest"),
        (b"[" * 100_000, "invalid_manifest"),
        (json.dumps(manifest(item("a", facets={"x": 17}))).replace("17", "NaN").encode(), "invalid_manifest"),
        (json.dumps(manifest(item("a", human_time_s=17))).replace("17", "1e999").encode(), "invalid_manifest"),
        (json.dumps(manifest(item("a", human_time_s=17))).encode() + b" ", None),
        (json.dumps(manifest()).encode(), "invalid_manifest"),
        (json.dumps(manifest(item("a"), item("a"))).encode(), "invalid_manifest"),
        (json.dumps(manifest({"key": "a", "status": "ok"})).encode(), "invalid_manifest"),
        (json.dumps(manifest(item("\x00"))).encode(), "unstorable_text"),
        (json.dumps(manifest(item("a"), notice="\ud800")).encode(), "invalid_manifest"),
    ],
    ids=["empty", "bytes", "deep", "nan", "infinite", "fine", "none", "twice", "reasonless", "nul", "surrogate"],
)
async def test_what_is_no_manifest_is_a_failed_operation(tenant: Tenant, data: bytes, type_: str | None) -> None:
    operation = await _import(tenant, data)
    if type_ is None:
        assert (operation["state"], operation["problem"]) == ("succeeded", None)
        return
    assert operation["state"] == "failed"
    assert operation["problem"]["type"] == f"urn:workstead:problem:{type_}"
    assert operation["problem"]["status"] == 422
    assert (await tenant.get("/v1/benchmarks"))["data"] == []


async def test_an_uploaded_manifest_is_done_by_one_operation(tenant: Tenant) -> None:
    body = manifest(*(item(f"i{n}") for n in range(450)))
    sha = hashlib.sha256(json.dumps(body).encode()).hexdigest()
    refused = await tenant.post("/v1/benchmarks", {"manifest_sha256": sha}, 422)
    assert refused["missing"] == [sha]
    await uploaded(tenant, body)
    first, second = await asyncio.gather(
        tenant.post("/v1/benchmarks", {"manifest_sha256": sha}, 202),
        tenant.post("/v1/benchmarks", {"manifest_sha256": sha}, 202),
    )
    assert first["id"] == second["id"]
    await work_off(tenant)
    operation = await tenant.get(f"/v1/operations/{first['id']}")
    assert (operation["state"], operation["done"], operation["total"], operation["unit"]) == (
        "succeeded", 450, 450, "items",
    )  # fmt: skip
    made = await tenant.post("/v1/benchmarks", {"manifest_sha256": sha}, 200)
    assert made["id"] == operation["result"]["benchmark_id"]
    assert made["counts"]["ok"] == 450
    same = await tenant.post("/v1/benchmarks", {"manifest": manifest(*(item(f"i{n}") for n in range(150)))}, 409)
    assert same["type"].endswith("benchmark_version_taken")


async def test_a_large_manifest_in_the_request_goes_the_same_way(tenant: Tenant) -> None:
    body = manifest(*(item(f"i{n}") for n in range(201)))
    posting = asyncio.create_task(tenant.post("/v1/benchmarks", {"manifest": body}))
    await _queued(tenant)
    await work_off(tenant)
    assert (await posting)["counts"]["items"] == 201


async def test_a_deleted_benchmark_can_be_imported_again(tenant: Tenant) -> None:
    data = json.dumps(manifest(item("a"))).encode()
    first = (await _import(tenant, data))["result"]["benchmark_id"]
    answer = await tenant.client.delete(f"/v1/benchmarks/{first}")
    assert answer.status_code == 204
    await tenant.get(f"/v1/benchmarks/{first}", 404)
    tasks = (await tenant.get("/v1/tasks"))["data"]
    assert len(tasks) == 1
    second = (await _import(tenant, data))["result"]
    assert second["created"]
    assert second["benchmark_id"] != first
    assert [t["id"] for t in (await tenant.get("/v1/tasks"))["data"]] == [tasks[0]["id"]]


async def test_a_benchmark_with_live_runs_stays(tenant: Tenant) -> None:
    made = await tenant.post("/v1/benchmarks", {"manifest": manifest(item("a"))})
    (one,) = (await tenant.get(f"/v1/benchmarks/{made['id']}/items"))["data"]
    agent = await tenant.agent()
    run = await tenant.post("/v1/runs", {"task": one["task"]["id"], "agent": agent["id"]})
    answer = await tenant.client.delete(f"/v1/benchmarks/{made['id']}")
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:workstead:problem:benchmark_in_use")
    await tenant.finish(run["id"])
    assert (await tenant.client.delete(f"/v1/benchmarks/{made['id']}")).status_code == 204
    assert (await tenant.get(f"/v1/runs/{run['id']}"))["task"]["id"] == one["task"]["id"]


async def test_items_are_filtered_and_paged_in_order(tenant: Tenant) -> None:
    keys = ["easy--a--task1", "easy--a--task2", "main--a_b--task1", "main--axb--task1", "main--a%b--task1"]
    body = manifest(*(item(key, name="t", facets={"split": key[:4]}) for key in keys))
    path = f"/v1/benchmarks/{(await tenant.post('/v1/benchmarks', {'manifest': body}))['id']}/items"

    async def listed(query: str) -> list[str]:
        return [i["key"] for i in (await tenant.get(f"{path}?{query}"))["data"]]

    assert await listed("facet.split=easy") == keys[:2]
    assert await listed("item=*--task1") == [keys[0], *keys[2:]]
    assert await listed("item=main--a_b*") == [keys[2]]
    assert await listed("item=main--a%25b*") == [keys[4]]
    assert await listed("item=main--a?b--task1") == keys[2:]
    assert await listed("status=quarantined") == []
    seen: list[str] = []
    link: str | None = f"{path}?limit=2"
    while link:
        page = await tenant.get(link)
        seen += [i["key"] for i in page["data"]]
        link = page["next"]
    assert seen == keys
    await tenant.get(f"{path}?split=easy", 422)
    await tenant.get(f"{path}?status=odd", 422)


async def test_checks_are_kept_by_item(tenant: Tenant) -> None:
    made = await tenant.post("/v1/benchmarks", {"manifest": manifest(item("a"), item("b"), item("c"))})
    path = f"/v1/benchmarks/{made['id']}"
    found = {
        "a": {"state": "ok", "oracle": "passed", "nop": "failed"},
        "b": {"state": "broken", "oracle": "failed", "reasons": ["oracle scores 0 of 3"]},
    }
    checked = await tenant.post(f"{path}/checks", {"items": found}, 200)
    assert checked["counts"]["checked"] == {"ok": 1, "broken": 1}
    assert checked["revision"] > made["revision"]
    items = {i["key"]: i["checked"] for i in (await tenant.get(f"{path}/items"))["data"]}
    assert items["c"] is None
    assert items["b"]["reasons"] == ["oracle scores 0 of 3"]
    await tenant.post(f"{path}/checks", {"items": {"b": {"state": "suspect"}}}, 200)
    assert [i["key"] for i in (await tenant.get(f"{path}/items?check=suspect"))["data"]] == ["b"]
    refused = await tenant.post(f"{path}/checks", {"items": {"a": {"state": "broken"}, "z": {"state": "ok"}}}, 422)
    assert (refused["type"].rsplit(":", 1)[1], refused["keys"]) == ("unknown_items", ["z"])
    assert [i["key"] for i in (await tenant.get(f"{path}/items?check=ok"))["data"]] == ["a"]
    await tenant.post(f"{path}/checks", {"items": {"a": {"state": "splendid"}}}, 422)


async def test_labels_change_and_nothing_else(tenant: Tenant) -> None:
    made = await tenant.post("/v1/benchmarks", {"manifest": manifest(item("a"), labels={"a": "1"})})
    path = f"/v1/benchmarks/{made['id']}"
    tag = (await tenant.client.get(path)).headers["etag"]
    assert (await tenant.client.get(path, headers={"If-None-Match": tag})).status_code == 304
    answer = await tenant.client.patch(path, json={"labels": {"b": "2"}})
    assert answer.json()["labels"] == {"b": "2"}
    assert answer.json()["digest"] == made["digest"]
    assert answer.headers["etag"] != tag
    assert (await tenant.client.get(path, headers={"If-None-Match": tag})).status_code == 200
    assert [b["id"] for b in (await tenant.get("/v1/benchmarks?label.b=2"))["data"]] == [made["id"]]
    assert (await tenant.get("/v1/benchmarks?label.a=1"))["data"] == []
    assert (await tenant.client.patch(path, json={"labels": {}, "digest": "0"})).status_code == 422


async def test_the_list_counts_and_says_when_it_changed(tenant: Tenant) -> None:
    path = f"/v1/benchmarks/{(await tenant.post('/v1/benchmarks', {'manifest': manifest(item('a'))}))['id']}"
    await tenant.post("/v1/benchmarks", {"manifest": manifest(item("a"), item("b"), name="other")})
    listed = await tenant.client.get("/v1/benchmarks?sort=name&total=true&fields=name,counts")
    assert [(b["name"], b["counts"]["ok"]) for b in listed.json()["data"]] == [("other", 2), ("set", 1)]
    assert listed.json()["total"] == 2
    same = {"If-None-Match": listed.headers["etag"]}
    assert (await tenant.client.get("/v1/benchmarks", headers=same)).status_code == 304
    await tenant.post(f"{path}/checks", {"items": {"a": {"state": "ok"}}}, 200)
    assert (await tenant.client.get("/v1/benchmarks", headers=same)).status_code == 200


async def test_scopes(tenant: Tenant) -> None:
    made = await tenant.post("/v1/benchmarks", {"manifest": manifest(item("a"))})
    path = f"/v1/benchmarks/{made['id']}"
    read, none = await tenant.token("benchmarks:read"), await tenant.token("tasks:write")
    for headers, status in ((read, 200), (none, 403)):
        for at in ("/v1/benchmarks", path, f"{path}/items"):
            assert (await tenant.client.get(at, headers=headers)).status_code == status
    for headers in (read, none):
        body = {"manifest": manifest(item("b"), version="2")}
        assert (await tenant.client.post("/v1/benchmarks", json=body, headers=headers)).status_code == 403
        assert (await tenant.client.delete(path, headers=headers)).status_code == 403
        assert (await tenant.client.patch(path, json={"labels": {}}, headers=headers)).status_code == 403
    await tenant.post("/v1/benchmarks", {}, 422)


async def test_what_only_another_project_has_is_missing(tenant: Tenant, other: Tenant) -> None:
    theirs, mine = await other.blob(b"theirs"), await tenant.blob(b"mine")
    unknown = hashlib.sha256(b"nobody's").hexdigest()
    body = {"digests": [unknown, theirs, mine, theirs]}
    assert (await tenant.post("/v1/blobs:missing", body, 200))["missing"] == [unknown, theirs]
    refused = await tenant.post(
        "/v1/benchmarks",
        {"manifest": manifest(item("a", visible=[{"path": "x", "sha256": theirs, "size_bytes": 6}]))},
        422,
    )
    assert refused["missing"] == [theirs]
    await tenant.post("/v1/blobs:missing", {"digests": ["x"]}, 422)
    await tenant.post("/v1/blobs:missing", {"digests": [mine] * 10_001}, 422)
    headers = await tenant.token("runs:read")
    assert (await tenant.client.post("/v1/blobs:missing", json=body, headers=headers)).status_code == 403
