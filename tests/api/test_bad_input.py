"""What a careless or hostile client sends: always a problem document, never a crash."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
import structlog

from service.api import edge, server
from tests.api.apps import app_of
from tests.api.helpers import BASE, Tenant

PROBLEM = "application/problem+json"


@pytest.mark.fault(96)
async def test_deep_and_odd_json_is_4xx(tenant: Tenant) -> None:
    for body in (
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"{",
        b"",
        b"null",
        b"[]",
        b'"\\ud800"',
        b"\xff",
        b'{"name": NaN}',
    ):
        for path in ("/v1/runs", "/v1/tasks", "/v1/scaffolds", "/v1/agents", "/v1/tokens"):
            answer = await tenant.client.post(path, content=body, headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM), (path, body[:20])


async def test_text_that_the_database_cannot_hold_is_422(tenant: Tenant) -> None:
    body = b'{"name": "t", "instruction": "a\\u0000b"}'
    answer = await tenant.client.post("/v1/tasks", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert (await tenant.client.get("/v1/runs/a%00b")).status_code == 404
    assert (await tenant.client.get("/v1/tasks?name=%00")).status_code == 422
    assert (await tenant.client.get("/v1/tasks?name=%ff%fe")).status_code == 200


async def test_large_bodies_are_413(tenant: Tenant) -> None:
    big = b'{"name": "' + b"x" * (2 << 20) + b'"}'
    answer = await tenant.client.post("/v1/tasks", content=big, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (413, PROBLEM)
    chunks = [big[i : i + 65536] for i in range(0, len(big), 65536)]

    async def pieces() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    answer = await tenant.client.post("/v1/tasks", content=pieces(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


async def test_every_refusal_is_a_problem_with_the_requests_id(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    cases = [("GET", "/nothing", 404), ("PUT", "/v1/runs", 405), ("GET", "/v1/runs/", 404), ("GET", "/v1/runs/x", 404)]
    for method, path, status in cases:
        answer = await tenant.client.request(method, path, headers={"X-Request-Id": "my-id-1"})
        assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM), path
        assert answer.headers["x-request-id"] == answer.json()["request_id"] == "my-id-1"
    answer = await anonymous.get("/v1/me", headers={"X-Request-Id": "bad id\t<script>"})
    assert answer.headers["x-request-id"].startswith("req_")
    assert (await tenant.client.put("/v1/runs")).headers["allow"]


async def test_a_fault_of_ours_tells_nothing(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("service.api.resources.runs.run_view", broken)
    run = await tenant.client.post(
        "/v1/runs", json={"task": (await tenant.task())["id"], "agent": (await tenant.agent())["id"]}
    )
    assert (run.status_code, run.headers["content-type"]) == (500, PROBLEM)
    assert "secret" not in run.text
    assert run.json()["type"] == "urn:workstead:problem:internal_error"
    assert run.json()["request_id"] == run.headers["x-request-id"]
    assert (await tenant.get("/v1/runs"))["data"] == []


@pytest.mark.fault(98)
async def test_line_breaks_never_reach_a_log_line(tenant: Tenant) -> None:
    with structlog.testing.capture_logs() as logs:
        await tenant.client.get("/v1/runs/a%0d%0a%1b[2Jfake=1")
    rendered = [json.dumps(entry, default=str) for entry in logs if entry["event"] == "request_served"]
    assert len(rendered) == 1
    assert "\\u000d" in logs[0]["path"]
    assert "\n" not in rendered[0]
    assert {"status", "ms", "request_id", "method"} <= set(logs[0])


@pytest.mark.fault(96)
async def test_slow_headers_and_bodies_are_cut(tenant: Tenant, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_WAIT_S", 0.3)
    monkeypatch.setattr(edge, "BODY_WAIT_S", 0.3)
    port = int(url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    assert await asyncio.wait_for(reader.read(), 3) == b""
    writer.close()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {tenant.secret}\r\n"
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 3)
    assert answer.startswith(b"HTTP/1.1 408")
    writer.close()


@pytest.mark.fault(61, 96)
async def test_headers_are_bounded(tenant: Tenant, url: str) -> None:
    port = int(url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + b"x" * 1_000_000 + b"\r\n\r\n")
    assert (await asyncio.wait_for(reader.readuntil(b"\r\n"), 5)).startswith(b"HTTP/1.1 401")
    writer.close()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /v1/me HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(300_000)))
    assert await asyncio.wait_for(_until_closed(reader), 5)
    writer.close()


async def _until_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


async def test_health_and_metrics(anonymous: httpx.AsyncClient) -> None:
    assert (await anonymous.get("/healthz")).json() == {"status": "ok"}
    assert (await anonymous.get("/readyz")).json() == {"status": "ok"}
    await anonymous.get("/v1/runs/run_x")
    text = (await anonymous.get("/metrics")).text
    assert 'route="/v1/runs/{run_id}"' in text
    assert "run_x" not in text


async def test_cors_is_for_named_origins_and_without_cookies(tenant: Tenant) -> None:
    tenant.state.config = replace(tenant.state.config, cors_origins=("https://app.test",))
    transport = httpx.ASGITransport(app_of(tenant.state))
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        answer = await client.get("/v1/me", headers={"Origin": "https://app.test"} | tenant.bearer)
        assert answer.headers["access-control-allow-origin"] == "https://app.test"
        assert "etag" in answer.headers["access-control-expose-headers"].lower()
        assert "access-control-allow-credentials" not in answer.headers
        foreign = await client.get("/v1/me", headers={"Origin": "https://evil.test"} | tenant.bearer)
        assert "access-control-allow-origin" not in foreign.headers
