"""Blobs, tasks, scaffolds, agents."""

import hashlib

import httpx
import pytest

from tests.api.helpers import Tenant


async def test_only_missing_bytes_travel(tenant: Tenant, other: Tenant) -> None:
    data = b"x" * 100_000
    path = f"/v1/blobs/{hashlib.sha256(data).hexdigest()}"
    nothing = await tenant.client.head(path)
    assert (nothing.status_code, nothing.headers["upload-offset"]) == (404, "0")
    made = await tenant.client.put(path, content=data)
    assert (made.status_code, made.json()["size_bytes"]) == (201, 100_000)
    there = await tenant.client.head(path)
    assert (there.status_code, there.headers["upload-complete"], there.headers["upload-offset"]) == (
        200,
        "?1",
        "100000",
    )
    assert (await other.client.head(path)).status_code == 404
    assert (await other.client.get(path)).status_code == 404
    part = await tenant.client.get(path, headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, b"x" * 10)
    assert (await tenant.client.get(path, headers=await tenant.token("tasks:read", "runs:read"))).status_code == 403


@pytest.mark.fault(123)
async def test_a_broken_upload_goes_on(tenant: Tenant) -> None:
    data = bytes(range(256)) * 1000
    digest = hashlib.sha256(data).hexdigest()
    path = f"/v1/blobs/{digest}"
    begun = await tenant.client.put(path, content=data[:70_000], headers={"Upload-Length": str(len(data))})
    assert (begun.status_code, begun.headers["upload-offset"]) == (204, "70000")
    seen = await tenant.client.head(path)
    assert (seen.status_code, seen.headers["upload-complete"]) == (204, "?0")
    wrong = await tenant.client.patch(path, content=data[5:], headers={"Upload-Offset": "5"})
    assert wrong.status_code == 409
    rest = await tenant.client.patch(path, content=data[70_000:], headers={"Upload-Offset": "70000"})
    assert rest.status_code == 201
    assert (await tenant.client.get(path)).content == data


async def test_content_that_is_not_its_name_is_refused(tenant: Tenant) -> None:
    digest = hashlib.sha256(b"right").hexdigest()
    answer = await tenant.client.put(f"/v1/blobs/{digest}", content=b"wrong")
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (422, "wrong_digest")
    assert (await tenant.client.get(f"/v1/blobs/{digest}")).status_code == 404
    assert (await tenant.client.put("/v1/blobs/UPPER", content=b"")).status_code == 422


async def test_tasks_are_what_their_digest_is(tenant: Tenant) -> None:
    digest = await tenant.blob(b"hello")
    visible = [{"path": "in/a.txt", "sha256": digest, "size_bytes": 5}]
    task = await tenant.task(visible=visible, facets={"occupation": "clerk"}, labels={"b": "1"})
    assert task["digest"].startswith("sha256:")
    again = await tenant.client.post("/v1/tasks", json=task["manifest"])
    assert (again.status_code, again.json()["id"]) == (200, task["id"])
    assert (await tenant.get(f"/v1/tasks/{task['id']}"))["manifest"]["visible"] == visible
    assert [t["id"] for t in (await tenant.get("/v1/tasks?facet.occupation=clerk&label.b=1"))["data"]] == [task["id"]]
    assert (await tenant.get("/v1/tasks?facet.occupation=pilot"))["data"] == []
    await tenant.get("/v1/tasks?occupation=clerk", 422)


async def test_missing_files_are_named(tenant: Tenant, other: Tenant) -> None:
    theirs = await other.blob(b"theirs")
    body = {"name": "t", "instruction": "x", "visible": [{"path": "a", "sha256": theirs, "size_bytes": 6}]}
    problem = await tenant.post("/v1/tasks", body, 422)
    assert (problem["type"], problem["missing"]) == ("urn:workstead:problem:missing_blobs", [theirs])


async def test_hidden_assets_are_named_to_holders_of_hidden_read_only(
    tenant: Tenant, anonymous: httpx.AsyncClient
) -> None:
    digest = await tenant.blob(b'{"n": 1}')
    settings = {
        "file": "output/a.json",
        "expected": {"hidden": "answers.json"},
        "answers": [{"id": "n", "type": "int"}],
    }
    task = await tenant.task(
        hidden=[{"path": "answers.json", "sha256": digest, "size_bytes": 8}],
        graders=[{"method": "exact", "settings": settings}],
    )
    assert task["manifest"]["hidden"][0]["sha256"] == digest
    reader = await tenant.token("tasks:read", "tasks:write", "runs:read")
    for path in (f"/v1/tasks/{task['id']}", "/v1/tasks"):
        text = (await anonymous.get(path, headers=reader)).text
        assert digest not in text
        assert "answers" not in text
    assert (await anonymous.get(f"/v1/blobs/{digest}", headers=reader)).status_code == 403


@pytest.mark.parametrize(
    "files",
    [
        [{"path": "../x", "size_bytes": 1}],
        [{"path": "/etc/passwd", "size_bytes": 1}],
        [{"path": "a", "size_bytes": 1}, {"path": "a/b", "size_bytes": 1}],
        [{"path": ".home/x", "size_bytes": 1}],
        [{"path": "a\\b", "size_bytes": 1}],
        [{"path": "a", "size_bytes": -1}],
    ],
)
async def test_bad_paths_are_422(tenant: Tenant, files: list[dict[str, object]]) -> None:
    visible = [{"sha256": "0" * 64, **f} for f in files]
    assert (await tenant.post("/v1/tasks", {"name": "t", "instruction": "x", "visible": visible}, 422))["errors"]


async def test_scaffolds_and_agents(tenant: Tenant) -> None:
    agent = await tenant.agent(settings={"effort": "high"}, label="solver high")
    assert (agent["scaffold"], agent["settings"], agent["label"]) == ("solver@1", {"effort": "high"}, "solver high")
    assert await tenant.get(f"/v1/agents/{agent['id']}") == agent
    taken = await tenant.post("/v1/agents", {"scaffold": "solver@1", "label": "solver high"}, 409)
    assert taken["type"].endswith("label_taken")
    await tenant.post("/v1/agents", {"scaffold": "nothing@1"}, 404)
    other = {"name": "solver", "version": "1", "kind": "command", "argv": ["false"]}
    assert (await tenant.post("/v1/scaffolds", other, 409))["type"].endswith("scaffold_exists")
    unknown = {"name": "s", "version": "1", "kind": "command", "argv": ["{secret}"]}
    assert (await tenant.client.post("/v1/scaffolds", json=unknown)).status_code == 422
    found = await tenant.get("/v1/scaffolds/solver@1")
    assert found == await tenant.get(f"/v1/scaffolds/{found['id']}")
    slashed = {"name": "org/tool", "version": "2", "kind": "command", "argv": ["true"]}
    await tenant.post("/v1/scaffolds", slashed)
    assert (await tenant.get("/v1/scaffolds/org/tool@2"))["manifest"]["argv"] == ["true"]
    assert len((await tenant.get("/v1/scaffolds"))["data"]) == 2
    assert len((await tenant.get("/v1/agents?limit=1"))["data"]) == 1
