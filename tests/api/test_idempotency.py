"""Idempotency-Key on runs and gradings."""

import asyncio

import httpx
import pytest

from tests.api.helpers import Tenant, file_entry

KEY = {"Idempotency-Key": "k-1"}


async def _body(tenant: Tenant) -> dict[str, object]:
    return {"task": (await tenant.task())["id"], "agent": (await tenant.agent())["id"]}


@pytest.mark.fault(112)
async def test_fifty_submits_with_one_key_make_one_run(tenant: Tenant) -> None:
    body = await _body(tenant)

    async def post(one: dict[str, object]) -> httpx.Response:
        return await tenant.client.post("/v1/runs", json=one, headers=KEY)

    answers = await asyncio.gather(*(post(body) for _ in range(50)))
    assert {a.status_code for a in answers} <= {201, 409}
    made = {a.json()["id"] for a in answers if a.status_code == 201}
    assert len(made) == 1
    assert all(a.json()["type"].endswith("idempotency_in_progress") for a in answers if a.status_code == 409)
    assert len((await tenant.get("/v1/runs"))["data"]) == 1
    different = await post(body | {"sample": 2})
    assert (different.status_code, different.json()["type"].rpartition(":")[2]) == (422, "idempotency_key_reused")
    again = await post(body)
    assert (again.status_code, again.headers["idempotent-replay"]) == (201, "true")
    assert again.json()["id"] == made.pop()
    assert again.headers["location"].endswith(again.json()["id"])
    assert len((await tenant.get("/v1/runs"))["data"]) == 1


async def test_an_error_is_not_kept(tenant: Tenant) -> None:
    body = await _body(tenant)
    missing = await tenant.client.post("/v1/runs", json=body | {"task": "task_missing"}, headers=KEY)
    assert missing.status_code == 404
    assert (await tenant.client.post("/v1/runs", json=body, headers=KEY)).status_code == 201


async def test_keys_belong_to_their_project(tenant: Tenant, other: Tenant) -> None:
    mine = await tenant.client.post("/v1/runs", json=await _body(tenant), headers=KEY)
    theirs = await other.client.post("/v1/runs", json=await _body(other), headers=KEY)
    assert (mine.status_code, theirs.status_code) == (201, 201)
    assert mine.json()["id"] != theirs.json()["id"]
    assert "idempotent-replay" not in theirs.headers


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "a b", "ü"])
async def test_bad_keys(tenant: Tenant, key: str) -> None:
    headers = {b"Idempotency-Key": key.encode("latin-1")}
    answer = await tenant.client.post("/v1/runs", json=await _body(tenant), headers=headers)
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (422, "bad_idempotency_key")


async def test_regrade_once(tenant: Tenant) -> None:
    grader = {"method": "exact", "settings": EXACT}
    expected = await tenant.blob(b'{"n": 1}')
    hidden = [{"path": "answers.json", "sha256": expected, "size_bytes": 8}]
    task = await tenant.task(name="t/graded", graders=[grader], hidden=hidden)
    agent = await tenant.agent()
    run = await tenant.post("/v1/runs", {"task": task["id"], "agent": agent["id"]})
    path = f"/v1/runs/{run['id']}/gradings"
    early = await tenant.client.post(path, json={})
    assert early.status_code in (409, 422)
    attempt = await tenant.start(run["id"])
    await tenant.seal(attempt, [file_entry("output/answers.json", b'{"n": 1}', "application/json")])
    await tenant.finish(run["id"])
    first = await tenant.client.post(path, json={}, headers=KEY)
    assert first.status_code == 202, first.text
    again = await tenant.client.post(path, json={}, headers=KEY)
    assert again.headers["idempotent-replay"] == "true"
    assert [g["id"] for g in again.json()["data"]] == [g["id"] for g in first.json()["data"]]
    listed = (await tenant.get(path))["data"]
    assert len(listed) == 1
    one = await tenant.get(f"/v1/gradings/{listed[0]['id']}")
    assert one["settings"]["answers"] == EXACT["answers"]
    blind = await tenant.client.get(f"/v1/gradings/{listed[0]['id']}", headers=await tenant.token("gradings:read"))
    assert blind.json()["settings"] is None


EXACT = {
    "file": "output/answers.json",
    "expected": {"hidden": "answers.json"},
    "answers": [{"id": "n", "type": "int"}],
}
