"""Rate limits over HTTP: headers, refusals, what a 304 costs, wrong credentials."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from service.api.rate_limits import Rates
from service.api.state import ApiState
from tests.api.apps import app_of
from tests.api.helpers import BASE, Tenant, make_tenant

LIMITED = "urn:workstead:problem:rate_limited"
SLOW = Rates(read_per_s=0.01, read_burst=5, write_per_s=0.01, write_burst=3, failures_per_s=0.01, failures_burst=4)


@pytest.fixture
async def narrow(state: ApiState) -> AsyncIterator[Tenant]:
    """A tenant of an API with hardly any calls."""
    own = replace(state, config=replace(state.config, rates=SLOW))
    async with make_tenant(own, app_of(own), "narrow") as one:
        yield one


async def test_reads_and_writes_are_counted_for_each_token(narrow: Tenant) -> None:
    other = await narrow.token("admin")
    for left in (4, 3, 2, 1, 0):
        answer = await narrow.client.get("/v1/runs")
        assert answer.status_code == 200
        assert answer.headers["ratelimit-policy"] == '"read";q=5;w=500'
        assert answer.headers["ratelimit"].startswith(f'"read";r={left};t=')
    refused = await narrow.client.get("/v1/me")
    assert (refused.status_code, refused.json()["type"], refused.json()["policy"]) == (429, LIMITED, "read")
    assert 90 <= int(refused.headers["retry-after"]) <= 100
    assert refused.headers["ratelimit"].startswith('"read";r=0;')
    assert (await narrow.client.post("/v1/runs", json={})).status_code == 422  # another class
    assert (await narrow.client.get("/v1/runs", headers=other)).status_code == 200  # another token


async def test_a_304_costs_a_tenth(narrow: Tenant) -> None:
    first = await narrow.client.get("/v1/runs")
    headers = {"If-None-Match": first.headers["etag"]}
    same = [await narrow.client.get("/v1/runs", headers=headers) for _ in range(30)]
    assert {a.status_code for a in same} == {304}
    assert same[-1].headers["ratelimit"].startswith('"read";r=1;')
    assert (await narrow.client.get("/v1/runs")).status_code == 200
    assert (await narrow.client.get("/v1/runs")).status_code == 429


async def test_a_run_that_is_polled_costs_a_tenth_too(narrow: Tenant) -> None:
    path = f"/v1/runs/{(await narrow.run())['id']}"
    headers = {"If-None-Match": (await narrow.client.get(path)).headers["etag"]}
    answers = [await narrow.client.get(path, headers=headers) for _ in range(42)]
    assert [a.status_code for a in answers] == [304] * 40 + [429] * 2
    assert answers[39].headers["ratelimit"].startswith('"read";r=0;')


async def test_uploads_have_a_wider_class(narrow: Tenant) -> None:
    for i in range(12):
        await narrow.blob(b"%d" % i)
        await narrow.task(name=f"t/{i}")
    answer = await narrow.client.post("/v1/tasks", json={})
    assert answer.headers["ratelimit-policy"] == '"upload";q=2000;w=4'


async def test_an_address_that_fails_too_often_waits_but_known_tokens_do_not(narrow: Tenant) -> None:
    unknown = await narrow.token("runs:read")
    assert (await narrow.client.get("/v1/me")).status_code == 200
    transport = httpx.ASGITransport(app_of(narrow.state))
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        for _ in range(4):
            assert (await client.get("/v1/me", headers={"Authorization": "Bearer x"})).status_code == 401
        for headers in ({"Authorization": "Bearer x"}, unknown):
            refused = await client.get("/v1/me", headers=headers)
            assert (refused.status_code, refused.json()["policy"]) == (429, "failures")
        login = await client.post("/login", json={"token": "x"}, headers={"Origin": BASE})
        assert login.status_code == 429
        assert (await client.get("/v1/changes?ticket=x")).status_code == 429
        assert (await client.get("/v1/me", headers=narrow.bearer)).status_code == 200


async def test_failed_logins_count(narrow: Tenant) -> None:
    for _ in range(4):
        login = await narrow.client.post("/login", json={"token": "x"}, headers={"Origin": BASE})
        assert login.status_code == 401
    again = await narrow.client.post("/login", json={"token": "x"}, headers={"Origin": BASE})
    assert (again.status_code, again.json()["type"]) == (429, LIMITED)


async def test_foreign_pages_may_read_the_headers(state: ApiState) -> None:
    own = replace(state, config=replace(state.config, cors_origins=("https://a.test",)))
    async with make_tenant(own, app_of(own), "cors") as one:
        answer = await one.client.get("/v1/runs", headers={"Origin": "https://a.test"})
    exposed = {h.strip() for h in answer.headers["access-control-expose-headers"].split(",")}
    assert exposed >= {"ETag", "Link", "Retry-After", "RateLimit", "RateLimit-Policy"}
    assert answer.headers["access-control-allow-origin"] == "https://a.test"
    assert "access-control-allow-credentials" not in answer.headers
