"""Integrity reports through the client: what is there, what is not there yet, and asking for it."""

import httpx

from tests.unit.workstead.fake_api import Script, client, sync_client

READY = {
    "run_id": "run_1", "state": "ready", "cause": None, "digest": "sha256:" + "0" * 64, "version": "1", "problems": 1,
    "files": [{
        "path": "output/a.pdf", "size_bytes": 3, "claims": "pdf", "sniffed": "html", "opens": False,
        "problems": [{"type": "type_mismatch", "detail": "the content is html"}], "facts": {"pages": None}, "later": 1,
    }],
    "not_listed": 0,
}  # fmt: skip
PENDING = {"run_id": "run_1", "state": "pending"}


async def test_a_report_is_read_and_asked_for() -> None:
    script = Script(httpx.Response(200, json=READY), httpx.Response(202, json=PENDING))
    async with client(script) as there:
        found = await there.runs.integrity("run_1")
        asked = await there.runs.make_integrity("run_1", idempotency_key="once")
    assert (found.state, found.problems, found.files[0].problems[0].type) == ("ready", 1, "type_mismatch")
    assert (asked.state, asked.problems, asked.files) == ("pending", None, [])
    assert [(r.method, r.url.path) for r in script.requests] == [
        ("GET", "/v1/runs/run_1/integrity"), ("POST", "/v1/runs/run_1/integrity"),
    ]  # fmt: skip
    assert script.requests[1].headers["Idempotency-Key"] == "once"


def test_so_it_is_without_async() -> None:
    with sync_client(Script(httpx.Response(200, json=READY))) as there:
        assert there.runs.integrity("run_1").files[0].opens is False
