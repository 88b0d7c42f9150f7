"""One-time tickets: one GET, one path, one minute, one origin."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
import structlog
from sqlalchemy import text

from service.api.state import ApiState
from service.store import tickets
from tests.api.apps import app_of
from tests.api.helpers import BASE, Tenant, file_entry, make_tenant, served
from tests.api.test_events import SSE, frames

APP = "https://app.test"
PROBLEM = "urn:workstead:problem:"


@pytest.fixture
async def tenant(state: ApiState) -> AsyncIterator[Tenant]:
    """Its API lets pages of ``APP`` in."""
    own = replace(state, config=replace(state.config, cors_origins=(APP,)))
    async with make_tenant(own, app_of(own), "tickets") as one:
        yield one


@pytest.fixture
async def browser(tenant: Tenant) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody without any credentials."""
    transport = httpx.ASGITransport(app_of(tenant.state))
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        yield client


async def ticket(tenant: Tenant, path: str, origin: str | None = APP) -> str:
    made = await tenant.post("/v1/tickets", {"path": path, "origin": origin})
    assert made["path"] == path
    return str(made["ticket"])


async def test_a_ticket_opens_a_stream_with_its_makers_rights(tenant: Tenant) -> None:
    run = await tenant.run()
    path = f"/v1/runs/{run['id']}/events"
    async with served(app_of(tenant.state)) as url, httpx.AsyncClient(timeout=20) as client:
        query = {"ticket": await ticket(tenant, path), "types": "run.phase"}
        headers = SSE | {"Origin": APP}
        async with client.stream("GET", url + path, params=query, headers=headers) as response:
            assert response.status_code == 200
            assert response.headers["access-control-allow-origin"] == APP
            found = frames(response)
            await anext(found)
            assert (await asyncio.wait_for(anext(found), 10))["id"] == "1"


async def test_changes_and_artifacts_too(tenant: Tenant, browser: httpx.AsyncClient) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    await tenant.seal(attempt, [file_entry("output/ü 1.txt", b"mine")])
    path = f"/v1/runs/{run['id']}/artifacts/output/%C3%BC%201.txt"
    answer = await browser.get(path, params={"ticket": await ticket(tenant, path, None)})
    assert (answer.status_code, answer.content) == (200, b"mine")
    page = await browser.get("/v1/changes", params={"ticket": await ticket(tenant, "/v1/changes"), "limit": 1})
    assert page.json()["data"][0]["id"] == run["id"]
    assert "tkt_" not in page.text


@pytest.mark.fault(63)
async def test_twice_late_elsewhere_or_otherwise_is_one_401(tenant: Tenant, browser: httpx.AsyncClient) -> None:
    run, other = await tenant.run(), await tenant.run()
    path = f"/v1/runs/{run['id']}/events"
    used = await ticket(tenant, path)
    assert (await browser.get(path, params={"ticket": used})).status_code == 200
    late = await ticket(tenant, path)
    async with tenant.state.db.transaction() as tx:
        await tx.execute(text("UPDATE tickets SET expires_at = clock_timestamp() WHERE used_at IS NULL"))
    fresh = await ticket(tenant, path)
    cases = [
        ("GET", path, used),
        ("GET", path, late),
        ("GET", f"/v1/runs/{other['id']}/events", fresh),
        ("GET", "/v1/runs", fresh),
        ("GET", path, "tkt_none"),
        ("GET", path, ""),
        ("POST", f"/v1/runs/{run['id']}/stop", fresh),
    ]
    for method, where, secret in cases:
        answer = await browser.request(method, where, params={"ticket": secret}, json={"mode": "discard"})
        assert answer.status_code == 401, (method, where)
        assert answer.json()["type"] == f"{PROBLEM}bad_ticket"
    assert (await browser.get(path, params={"ticket": fresh})).status_code == 200  # it was not used up by all that
    assert tickets.LIFE.total_seconds() <= 60


@pytest.mark.fault(63)
async def test_of_twenty_at_once_one_gets_in(tenant: Tenant, browser: httpx.AsyncClient) -> None:
    run = await tenant.run()
    path = f"/v1/runs/{run['id']}/events"
    query = {"ticket": await ticket(tenant, path)}
    answers = await asyncio.gather(*(browser.get(path, params=query) for _ in range(20)))
    assert sorted(a.status_code for a in answers) == [200] + [401] * 19


@pytest.mark.fault(64)
async def test_a_foreign_origin_is_refused(tenant: Tenant, browser: httpx.AsyncClient) -> None:
    run = await tenant.run()
    path = f"/v1/runs/{run['id']}/events"
    for made_for, sent in ((APP, "https://evil.test"), (APP, BASE), (None, APP), (None, "null")):
        secret = await ticket(tenant, path, made_for)
        answer = await browser.get(path, params={"ticket": secret}, headers=SSE | {"Origin": sent})
        assert (answer.status_code, answer.json()["type"]) == (403, f"{PROBLEM}foreign_origin"), sent
        assert (await browser.get(path, params={"ticket": secret})).status_code == 401  # and it is used up
    await browser.post("/login", json={"token": tenant.secret}, headers={"Origin": BASE})
    answer = await browser.get("/v1/changes", headers=SSE | {"Origin": "https://evil.test"})
    assert answer.status_code == 403  # the cookie neither


async def test_it_ends_with_its_token(tenant: Tenant, browser: httpx.AsyncClient) -> None:
    made = await tenant.post("/v1/tokens", {"scopes": ["runs:read"]})
    answer = await tenant.client.post(
        "/v1/tickets", json={"path": "/v1/changes"}, headers={"Authorization": f"Bearer {made['secret']}"}
    )
    await tenant.client.delete(f"/v1/tokens/{made['id']}")
    query = {"ticket": answer.json()["ticket"]}
    assert (await browser.get("/v1/changes", params=query)).status_code == 401


async def test_it_gives_no_more_than_its_makers_scopes(tenant: Tenant, browser: httpx.AsyncClient) -> None:
    run = await tenant.run()
    path = f"/v1/runs/{run['id']}/events"
    answer = await tenant.client.post("/v1/tickets", json={"path": path}, headers=await tenant.token("tasks:read"))
    assert (await browser.get(path, params={"ticket": answer.json()["ticket"]})).status_code == 403


async def test_what_tickets_are_not_for(tenant: Tenant) -> None:
    for path in ("/v1/runs", "/v1/tokens", "/v1/changes?after=1", "/v1/runs/a/../b/events", "//v1/changes", "/login"):
        assert (await tenant.post("/v1/tickets", {"path": path}, 422))["type"] == f"{PROBLEM}no_ticket_for_path", path
    for origin in ("app.test", "https://app.test/", "https://u@app.test", "null", ""):
        body = {"path": "/v1/changes", "origin": origin}
        assert (await tenant.post("/v1/tickets", body, 422))["type"] == f"{PROBLEM}bad_origin", origin
    body = {"path": "/v1/changes", "origin": "https://evil.test"}
    assert (await tenant.post("/v1/tickets", body, 422))["type"] == f"{PROBLEM}origin_not_allowed"


async def test_it_is_not_logged_nor_stored(tenant: Tenant, browser: httpx.AsyncClient) -> None:
    with structlog.testing.capture_logs() as logs:
        secret = await ticket(tenant, "/v1/changes")
        await browser.get("/v1/changes", params={"ticket": secret})
    assert logs
    assert secret not in repr(logs)
    async with tenant.state.db.reading() as tx:
        rows = (await tx.execute(text("SELECT t::text AS row FROM tickets t"))).scalars().all()
    assert rows
    assert not [r for r in rows if secret[4:] in r]
