"""The client's feed of changes and tickets; patience with rate limits."""

from typing import Any

import httpx
import pytest

from tests.unit.workstead.fake_api import Script, client, problem, run_body, sync_client
from workstead import errors


def page(*ids: str, cursor: str, more: bool = False) -> httpx.Response:
    data: list[dict[str, Any]] = [
        {"kind": "run", "id": i, "revision": 3, "deleted": False, "cursor": f"c-{i}", "body": {"phase": "done"}}
        for i in ids
    ]
    return httpx.Response(200, json={"data": data, "next": "/v1/changes?x" if more else None, "next_after": cursor})


async def test_changes_go_on_from_each_answers_cursor() -> None:
    script = Script(page("a", "b", cursor="1", more=True), page(cursor="2"), page("c", cursor="3"))
    seen: list[str] = []
    async with client(script) as api:
        async for change in api.changes(kinds=["run", "grading"]):
            seen.append(change.cursor)
            if len(seen) == 3:
                break
    assert seen == ["c-a", "c-b", "c-c"]
    sent = [dict(r.url.params) for r in script.requests]
    assert [p.get("after") for p in sent] == [None, "1", "2"]
    assert [float(p["wait_s"]) for p in sent] == [0, 0, 25]
    assert {p["kinds"] for p in sent} == {"run,grading"}


def test_without_following_it_stops_at_what_there_is() -> None:
    script = Script(page("a", cursor="1", more=True), page("b", cursor="2"))
    with sync_client(script) as api:
        assert [c.id for c in api.changes(after="0", follow=False)] == ["a", "b"]
    assert script.left == 0


async def test_an_old_cursor_is_gone_and_a_strange_answer_is_said() -> None:
    script = Script(problem(410, "cursor_expired"), httpx.Response(200, json={"data": []}))
    async with client(script) as api:
        with pytest.raises(errors.Gone):
            await anext(api.changes(after="x"))
        with pytest.raises(errors.ProtocolError):
            await anext(api.changes())


async def test_a_ticket() -> None:
    made = {"ticket": "tkt_1", "path": "/v1/changes", "expires_at": "2026-01-05T09:00:00.000Z"}
    script = Script(httpx.Response(201, json=made))
    async with client(script) as api:
        assert (await api.tickets.create("/v1/changes", origin="https://a.test")).ticket == "tkt_1"
    assert script.bodies == [b'{"path":"/v1/changes","origin":"https://a.test"}']


async def test_too_early_is_not_a_failure(waits: list[float]) -> None:
    def limited() -> httpx.Response:
        answer = problem(429, "rate_limited")
        answer.headers["Retry-After"] = "2"
        return answer

    script = Script(*[limited() for _ in range(20)], httpx.Response(200, json=run_body()))
    async with client(script, retries=1) as api:
        assert (await api.runs.get("run_1")).id == "run_1"
    assert len(waits) == 20
    assert all(2 <= w <= 30 for w in waits)
    script = Script(*[limited() for _ in range(100)])
    async with client(script, retries=1) as api:
        with pytest.raises(errors.RateLimited):
            await api.tickets.create("/v1/changes")
    assert 30 < len(script.requests) < 90
