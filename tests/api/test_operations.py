"""Operations: read, waited for, streamed to their end, cancelled."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from service.domain.operations import OperationState
from service.store import operations
from service.store.rows import OperationRow
from tests.api.helpers import Tenant

KIND = "benchmark_import"


async def opened(tenant: Tenant, kind: str = KIND, begin: bool = True) -> str:
    async with tenant.state.db.transaction() as tx:
        row = await operations.create(tx, tenant.project_id, kind, {"manifest_sha256": "0" * 64})
        if begin:
            await operations.begin(tx, row.id)
    return row.id


async def reported(tenant: Tenant, operation_id: str, done: int, total: int = 10) -> bool:
    line = {"at": "2026-11-01T12:00:00.000Z", "text": f"at {done}"}
    async with tenant.state.db.transaction() as tx:
        return await operations.report(tx, operation_id, done, total, [line])


async def ended(tenant: Tenant, operation_id: str, state: OperationState = OperationState.SUCCEEDED) -> None:
    async with tenant.state.db.transaction() as tx:
        await operations.finish(tx, operation_id, state, result={"benchmark_id": "bench_x", "created": True})


async def test_an_operation_tells_how_far_it_is(tenant: Tenant) -> None:
    operation_id = await opened(tenant, begin=False)
    path = f"/v1/operations/{operation_id}"
    first = await tenant.client.get(path)
    assert first.json()["state"] == "queued"
    assert (first.json()["done"], first.json()["total"], first.json()["started_at"]) == (0, None, None)
    async with tenant.state.db.transaction() as tx:
        row = await operations.begin(tx, operation_id)
    assert isinstance(row, OperationRow)
    assert await reported(tenant, operation_id, 3)
    second = await tenant.client.get(path, headers={"If-None-Match": first.headers["etag"]})
    body = second.json()
    assert (body["state"], body["done"], body["total"], body["log"][0]["text"]) == ("running", 3, 10, "at 3")
    assert body["revision"] > first.json()["revision"]
    same = await tenant.client.get(path, headers={"If-None-Match": second.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    await ended(tenant, operation_id)
    last = await tenant.get(path)
    assert (last["state"], last["result"]["benchmark_id"], last["problem"]) == ("succeeded", "bench_x", None)
    assert last["ended_at"] is not None
    assert not await reported(tenant, operation_id, 4)
    await ended(tenant, operation_id, OperationState.FAILED)
    assert await tenant.get(path) == last


async def test_a_failed_one_carries_a_whole_problem(tenant: Tenant) -> None:
    operation_id = await opened(tenant)
    problem = {
        "type": "missing_blobs",
        "status": 422,
        "detail": "1\x1b file",
        "fields": {"missing": ["x"], "title": "no"},
    }
    async with tenant.state.db.transaction() as tx:
        await operations.finish(tx, operation_id, OperationState.FAILED, problem=problem)
    assert (await tenant.get(f"/v1/operations/{operation_id}"))["problem"] == {
        "type": "urn:workstead:problem:missing_blobs",
        "title": "Unprocessable Content",
        "status": 422,
        "detail": "1\\u001b file",
        "missing": ["x"],
    }


async def test_waiting_returns_on_the_end_or_a_change_or_after_its_time(tenant: Tenant) -> None:
    operation_id = await opened(tenant)
    path = f"/v1/operations/{operation_id}"
    tag = (await tenant.client.get(path)).headers["etag"]
    loop = asyncio.get_running_loop()
    start = loop.time()
    answer = await tenant.client.get(path, params={"wait_s": 0.3, "until": "change"}, headers={"If-None-Match": tag})
    assert answer.status_code == 304
    assert 0.3 <= loop.time() - start < 5
    change = asyncio.create_task(
        tenant.client.get(path, params={"wait_s": 30, "until": "change"}, headers={"If-None-Match": tag})
    )
    end = asyncio.create_task(tenant.client.get(path, params={"wait_s": 30}))
    await asyncio.sleep(0.1)
    await reported(tenant, operation_id, 1)
    assert (await asyncio.wait_for(change, 10)).json()["done"] == 1
    assert not end.done()
    await ended(tenant, operation_id)
    assert (await asyncio.wait_for(end, 10)).json()["state"] == "succeeded"
    await tenant.get(f"{path}?wait_s=61", 422)


async def _messages(url: str, tenant: Tenant, path: str, **headers: str) -> AsyncIterator[dict[str, Any]]:
    given = {**tenant.bearer, "Accept": "text/event-stream", **headers}
    async with (
        httpx.AsyncClient(base_url=url, headers=given, timeout=30) as client,
        client.stream("GET", path) as answer,
    ):
        assert answer.status_code == 200
        message: dict[str, Any] = {}
        async for line in answer.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                message[name] = json.loads(value) if name == "data" else value
            elif message:
                yield message
                message = {}


async def test_a_stream_tells_each_state_and_its_end(tenant: Tenant, url: str) -> None:
    operation_id = await opened(tenant)
    path = f"/v1/operations/{operation_id}"
    seen: list[dict[str, Any]] = []
    async for message in _messages(url, tenant, path):
        if "data" not in message:
            continue
        seen.append(message)
        if message.get("event") == "end":
            break
        match len(seen):
            case 1:
                await reported(tenant, operation_id, 5)
            case 2:
                await ended(tenant, operation_id)
            case _:
                pass
    assert [m["data"]["state"] for m in seen] == ["running", "running", "succeeded", "succeeded"]
    assert [m["data"].get("done") for m in seen] == [0, 5, 5, None]
    assert [m.get("event") for m in seen] == [None, None, None, "end"]
    ids = [int(m["id"]) for m in seen[:3]]
    assert ids == sorted(set(ids))
    rest = [m async for m in _messages(url, tenant, path, **{"Last-Event-ID": str(ids[1])})]
    assert [m["data"]["state"] for m in rest if "data" in m] == ["succeeded", "succeeded"]
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(ids[2])}
    assert (await tenant.client.get(path, headers=headers)).status_code == 204
    assert (await tenant.client.get(path, headers={**headers, "Last-Event-ID": "x"})).status_code == 422


@pytest.mark.fault(65)
async def test_a_revoked_token_ends_its_stream(tenant: Tenant, url: str) -> None:
    path = f"/v1/operations/{await opened(tenant)}"
    token = await tenant.post("/v1/tokens", {"scopes": ["benchmarks:read"]})
    headers = {"Authorization": f"Bearer {token['secret']}"}
    start = asyncio.get_running_loop().time()
    async for message in _messages(url, tenant, path, **headers):
        if "data" in message:
            await tenant.client.delete(f"/v1/tokens/{token['id']}")
    assert asyncio.get_running_loop().time() - start < 5


@pytest.mark.fault(122)
async def test_cancelling_before_during_and_after(tenant: Tenant) -> None:
    waiting, running, done = await opened(tenant, begin=False), await opened(tenant), await opened(tenant)
    await ended(tenant, done)
    assert (await tenant.post(f"/v1/operations/{waiting}/cancel", None, 200))["state"] == "cancelled"
    async with tenant.state.db.transaction() as tx:
        assert await operations.begin(tx, waiting) is None
    asked = await tenant.post(f"/v1/operations/{running}/cancel", None, 200)
    assert (asked["state"], asked["cancel_requested_at"] is None) == ("running", False)
    assert (await tenant.post(f"/v1/operations/{running}/cancel", None, 200)) == asked
    assert not await reported(tenant, running, 2)
    async with tenant.state.db.transaction() as tx:  # a process that takes it up after a crash
        assert await operations.begin(tx, running) is None
    assert (await tenant.get(f"/v1/operations/{running}"))["state"] == "cancelled"
    assert (await tenant.post(f"/v1/operations/{done}/cancel", None, 200))["state"] == "succeeded"


async def test_lists_hold_what_the_token_may_read(tenant: Tenant, other: Tenant) -> None:
    mine = [await opened(tenant) for _ in range(3)]
    await opened(tenant, kind="unheard_of")
    foreign = await opened(other)
    await ended(tenant, mine[0])
    listed = (await tenant.get("/v1/operations"))["data"]
    assert [o["id"] for o in listed] == mine[::-1]
    assert [o["id"] for o in (await tenant.get("/v1/operations?state=succeeded&state=failed"))["data"]] == mine[:1]
    assert (await tenant.get("/v1/operations?kind=export"))["data"] == []
    page = await tenant.get("/v1/operations?limit=2")
    assert [o["id"] for o in (await tenant.get(page["next"]))["data"]] == mine[:1]
    await tenant.get("/v1/operations?status=failed", 422)
    tag = (await tenant.client.get("/v1/operations")).headers["etag"]
    assert (await tenant.client.get("/v1/operations", headers={"If-None-Match": tag})).status_code == 304
    await reported(tenant, mine[1], 7)
    assert (await tenant.client.get("/v1/operations", headers={"If-None-Match": tag})).status_code == 200
    read, none = await tenant.token("benchmarks:read"), await tenant.token("runs:read")
    assert (await tenant.client.get("/v1/operations", headers=none)).json()["data"] == []
    path = f"/v1/operations/{mine[1]}"
    assert (await tenant.client.get(path, headers=none)).status_code == 403
    assert (await tenant.client.get(path, headers=read)).status_code == 200
    assert (await tenant.client.post(f"{path}/cancel", headers=read)).status_code == 403
    await tenant.get(f"/v1/operations/{foreign}", 404)
