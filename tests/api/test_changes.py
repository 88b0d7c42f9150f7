"""The feed of changes over HTTP: order, cursors, tombstones, waiting, streams, who may read what."""

import asyncio
import json
import time
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from service.api import change_feed
from service.store import changes, gradings, runs
from tests.api.helpers import Tenant, file_entry
from tests.api.test_events import SSE, frames, opened

PROBLEM = "urn:workstead:problem:"


async def read(tenant: Tenant, after: str | None = None, **query: Any) -> Any:
    given = {k: str(v) for k, v in query.items()} | ({} if after is None else {"after": after})
    answer = await tenant.client.get("/v1/changes", params=given)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(page: Any, kind: str = "run") -> list[str]:
    return [c["id"] for c in page["data"] if c["kind"] == kind]


async def test_everything_there_is_comes_once_then_what_changes(tenant: Tenant) -> None:
    made = [(await tenant.run())["id"] for _ in range(3)]
    first = await read(tenant)
    assert ids(first) == made
    run = first["data"][0]
    assert (run["deleted"], run["body"]["phase"], run["body"]["labels"]) == (False, "queued", {})
    assert run["revision"] == (await tenant.get(f"/v1/runs/{made[0]}"))["revision"]
    assert first["next"] is None
    again = await read(tenant, first["next_after"])
    assert again["data"] == []
    await tenant.post(f"/v1/runs/{made[1]}/stop", {"mode": "discard"}, 200)
    then = await read(tenant, again["next_after"])
    assert ids(then) == [made[1]]
    assert then["data"][0]["body"]["phase"] == "done"


async def test_pages_follow_next_and_every_cursor_goes_on(tenant: Tenant) -> None:
    made = [(await tenant.run())["id"] for _ in range(5)]
    seen: list[str] = []
    answer = await tenant.client.get("/v1/changes?limit=2&kinds=run")
    while (body := answer.json())["next"]:
        assert answer.headers["link"] == f'<{body["next"]}>; rel="next"'
        seen += ids(body)
        answer = await tenant.client.get(body["next"])
    seen += ids(body)
    assert seen == made
    half = await read(tenant, kinds="run", limit=3)
    assert ids(await read(tenant, half["data"][1]["cursor"], kinds="run")) == made[2:]


async def test_after_now_tells_only_what_comes(tenant: Tenant) -> None:
    await tenant.run()
    start = await read(tenant, "now")
    assert start["data"] == []
    later = await tenant.run()
    assert ids(await read(tenant, start["next_after"])) == [later["id"]]


async def test_gradings_are_told_and_deletions_leave_tombstones(tenant: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    await tenant.seal(attempt, [file_entry("output/a.txt", b"1")])
    async with tenant.state.db.transaction() as tx:
        row = await runs.load(tx, run["id"])
        await gradings.enqueue(tx, row, [_exact()])
    page = await read(tenant)
    [grading] = [c for c in page["data"] if c["kind"] == "grading"]
    assert (grading["revision"], grading["body"]["state"], grading["body"]["run_id"]) == (1, "pending", run["id"])
    await tenant.finish(run["id"])
    page = await read(tenant, page["next_after"])
    revision = page["data"][-1]["revision"]
    assert (await tenant.client.delete(f"/v1/runs/{run['id']}")).status_code == 204
    after = await read(tenant, page["next_after"])
    gone = {c["kind"]: c for c in after["data"]}
    assert set(gone) == {"run", "grading"}
    assert all(c["deleted"] and c["body"] is None for c in gone.values())
    assert gone["run"]["revision"] == revision
    assert run["id"] not in ids(await read(tenant))  # who begins now never saw it


def _exact() -> Any:
    from service.domain.tasks import GraderSpec

    return GraderSpec(method="exact", settings={"expected": "1"})


async def test_old_tombstones_go_and_cursors_from_before_are_410(tenant: Tenant) -> None:
    run, kept = await tenant.run(), await tenant.run()
    before = await read(tenant)
    await tenant.finish(run["id"])
    await tenant.client.delete(f"/v1/runs/{run['id']}")
    async with tenant.state.db.transaction() as tx:
        await changes.purge(tx)
    assert ids(await read(tenant, before["next_after"])) == [run["id"]]  # not old yet
    async with tenant.state.db.transaction() as tx:
        await changes.purge(tx, timedelta(0))
    for headers in ({}, SSE):
        answer = await tenant.client.get("/v1/changes", params={"after": before["next_after"]}, headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (410, f"{PROBLEM}cursor_expired")
        assert answer.json()["restart"] == "/v1/changes"
    fresh = await read(tenant, limit=1)
    assert ids(fresh) == [kept["id"]]
    assert (await read(tenant, fresh["next_after"]))["data"] == []  # begun after the purge: nothing is missing


async def test_numbers_of_another_cluster_are_made_ours(tenant: Tenant) -> None:
    run = await tenant.run()
    before = await read(tenant)
    async with tenant.state.db.transaction() as tx:
        far = text("UPDATE changes SET txid = txid + 1000000000 WHERE resource_id = :id")
        await tx.execute(far, {"id": run["id"]})
    assert run["id"] not in ids(await read(tenant))
    async with tenant.state.db.transaction() as tx:
        await changes.purge(tx)
    assert run["id"] in ids(await read(tenant))
    answer = await tenant.client.get("/v1/changes", params={"after": before["next_after"]})
    assert answer.status_code == 410


async def test_a_wait_ends_with_a_change_or_its_time(tenant: Tenant) -> None:
    start = await read(tenant, "now")
    began = time.monotonic()
    waiting = asyncio.create_task(read(tenant, start["next_after"], wait_s=20))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    run = await tenant.run()
    assert ids(await waiting) == [run["id"]]
    assert time.monotonic() - began < 10
    assert (await read(tenant, "now", wait_s=0.2))["data"] == []
    assert not tenant.state.streams_of
    assert tenant.state.open_streams == 0


async def test_a_change_behind_an_open_transaction_is_told_soon_after_its_end(tenant: Tenant) -> None:
    start = await read(tenant, "now")
    async with tenant.state.db.transaction() as tx:
        await tx.execute(text("SELECT pg_current_xact_id()"))
        run = await tenant.run()
        assert (await read(tenant, start["next_after"], wait_s=0.5))["data"] == []
        waiting = asyncio.create_task(read(tenant, start["next_after"], wait_s=20))
        await asyncio.sleep(0.3)
        assert not waiting.done()
    ended = time.monotonic()
    assert ids(await waiting) == [run["id"]]
    assert time.monotonic() - ended < 5


async def test_a_stream_goes_on_from_its_last_id(tenant: Tenant, url: str) -> None:
    one = await tenant.run()
    address = f"{url}/v1/changes?kinds=run"
    async with opened(address, tenant.bearer) as response:
        found = frames(response)
        assert (await anext(found))["retry"] == "1000"
        first = await anext(found)
        assert json.loads(first["data"])["id"] == one["id"]
        two = await tenant.run()
        while "data" not in (frame := await anext(found)):
            assert frame["id"]
        assert json.loads(frame["data"])["id"] == two["id"]
        assert json.loads(frame["data"])["cursor"] == frame["id"]
    async with opened(address, tenant.bearer | {"Last-Event-ID": first["id"]}) as response:
        found = frames(response)
        await anext(found)
        assert json.loads((await anext(found))["data"])["id"] == two["id"]


async def test_silence_is_filled_with_cursors(tenant: Tenant, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_feed, "REREAD_S", 0.05)
    monkeypatch.setattr(change_feed, "HEARTBEAT_S", 0.2)
    async with opened(f"{url}/v1/changes?after=now", tenant.bearer) as response:
        found = frames(response)
        await anext(found)
        beat = await asyncio.wait_for(anext(found), 5)
    assert set(beat) == {"id"}
    assert (await read(tenant, beat["id"]))["data"] == []


@pytest.mark.fault(65)
async def test_a_revoked_token_ends_the_stream_within_5_s(tenant: Tenant, url: str) -> None:
    made = await tenant.post("/v1/tokens", {"scopes": ["runs:read"]})
    async with opened(f"{url}/v1/changes", {"Authorization": f"Bearer {made['secret']}"}) as response:
        reading = asyncio.create_task(_to_end(response))
        await asyncio.sleep(0.1)
        await tenant.client.delete(f"/v1/tokens/{made['id']}")
        run = await tenant.run()
        await asyncio.sleep(0.05)
        assert run["id"] not in await asyncio.wait_for(reading, 5)


@pytest.mark.fault(65)
async def test_a_revoked_token_ends_a_wait_within_5_s(tenant: Tenant) -> None:
    made = await tenant.post("/v1/tokens", {"scopes": ["runs:read"]})
    headers = {"Authorization": f"Bearer {made['secret']}"}
    waiting = asyncio.create_task(tenant.client.get("/v1/changes?after=now&wait_s=60", headers=headers))
    await asyncio.sleep(0.1)
    await tenant.client.delete(f"/v1/tokens/{made['id']}")
    assert (await asyncio.wait_for(waiting, 5)).status_code == 401


async def _to_end(response: httpx.Response) -> str:
    return "".join([chunk async for chunk in response.aiter_text()])


async def test_kinds_are_those_that_the_token_may_read(tenant: Tenant) -> None:
    await tenant.run()
    reader = await tenant.token("gradings:read")
    assert (await tenant.client.get("/v1/changes", headers=reader)).json()["data"] == []
    refused = await tenant.client.get("/v1/changes?kinds=run,grading", headers=reader)
    assert (refused.status_code, refused.json()["scope"]) == (403, "runs:read")
    nothing = await tenant.client.get("/v1/changes", headers=await tenant.token("hidden:read"))
    assert nothing.status_code == 403


async def test_bad_questions(tenant: Tenant) -> None:
    unknown = await tenant.client.get("/v1/changes?kinds=run,judgement")
    assert (unknown.status_code, unknown.json()["type"]) == (422, f"{PROBLEM}unknown_kind")
    assert unknown.json()["known"] == ["benchmark", "campaign", "evaluation", "grading", "operation", "run"]
    cursor = (await read(tenant, kinds="run"))["next_after"]
    for query in ("after=x", f"after={cursor}&kinds=grading", f"after={cursor[:-3]}", "kinds=", "since=1", "wait_s=61"):
        assert (await tenant.client.get(f"/v1/changes?{query}")).status_code == 422, query
    bad = await tenant.client.get("/v1/changes", headers=SSE | {"Last-Event-ID": "7"})
    assert bad.json()["type"] == f"{PROBLEM}bad_cursor"


async def test_a_token_has_so_many_streams(tenant: Tenant) -> None:
    one = (await tenant.get("/v1/me"))["token_id"]
    tenant.state.streams_of[one] = tenant.state.config.rates.streams_per_token
    for path, headers in (("/v1/changes", SSE), ("/v1/changes?after=now&wait_s=1", {})):
        answer = await tenant.client.get(path, headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (429, f"{PROBLEM}rate_limited")
        assert answer.headers["retry-after"] == "5"
    assert (await tenant.client.get("/v1/changes")).status_code == 200
