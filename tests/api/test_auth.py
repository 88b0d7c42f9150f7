"""Who may call: tokens, scopes, run tokens, sessions, origins."""

import secrets

import httpx
import pytest
import structlog

from service.store import tokens
from tests.api.helpers import BASE, Tenant

BAD = "urn:workstead:problem:bad_credentials"


async def test_me_tells_what_the_token_may_do(tenant: Tenant) -> None:
    me = await tenant.get("/v1/me")
    assert me["project_id"] == tenant.project_id
    assert (me["kind"], me["scopes"], me["run_id"]) == ("api", ["admin"], None)


@pytest.mark.fault(61)
async def test_everything_that_is_not_a_good_token_is_one_401(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    right = tenant.secret
    wrong = [
        f"Bearer {right[:12]}_{secrets.token_urlsafe(32)}",
        f"Bearer {right}x",
        f"Bearer {right[:-1]}",
        "Bearer ",
        "Bearer",
        "",
        "Basic YTpi",
        f"Bearer {'x' * 1_000_000}",
        "Bearer wst_ABCDEFGH_" + "é" * 43,
        "Bearer wst_\x00",
    ]
    for value in wrong:
        answer = await anonymous.get("/v1/me", headers={b"Authorization": value.encode("latin-1")})
        assert (answer.status_code, answer.json()["type"]) == (401, BAD), value[:60]
        assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.fault(61)
async def test_two_authorization_headers_are_none(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    value = f"Bearer {tenant.secret}"
    answer = await anonymous.get("/v1/me", headers=[("Authorization", value), ("Authorization", value)])
    assert answer.status_code == 401


async def test_no_credentials_at_all(anonymous: httpx.AsyncClient) -> None:
    answer = await anonymous.get("/v1/runs")
    assert (answer.status_code, answer.json()["type"]) == (401, "urn:workstead:problem:credentials_missing")


@pytest.mark.fault(62)
async def test_a_token_in_the_query_is_refused_and_not_logged(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    with structlog.testing.capture_logs() as logs:
        for name in ("token", "access_token", "anything"):
            answer = await anonymous.get("/v1/me", params={name: tenant.secret})
            assert (answer.status_code, answer.json()["type"]) == (401, "urn:workstead:problem:token_in_query")
            assert tenant.secret not in answer.text
        await anonymous.get(f"/v1/runs/{tenant.secret}")
    assert logs
    assert tenant.secret[13:] not in repr(logs)


async def test_scopes_bind(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    reader = await tenant.token("runs:read")
    assert (await anonymous.get("/v1/runs", headers=reader)).status_code == 200
    for method, path in [("GET", "/v1/tasks"), ("POST", "/v1/runs/x/stop"), ("GET", "/v1/tokens")]:
        answer = await anonymous.request(method, path, headers=reader, json={"mode": "collect"})
        assert (answer.status_code, answer.json()["type"]) == (403, "urn:workstead:problem:scope_missing"), path


async def test_a_run_token_opens_me_only(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    async with tenant.state.db.transaction() as tx:
        _, secret = await tokens.mint(tx, tenant.project_id, ["admin"], kind="run", run_id=run["id"], attempt=1)
    headers = {"Authorization": f"Bearer {secret}"}
    me = await anonymous.get("/v1/me", headers=headers)
    assert (me.status_code, me.json()["run_id"]) == (200, run["id"])
    for path in ("/v1/runs", f"/v1/runs/{run['id']}", f"/v1/runs/{run['id']}/events", "/v1/tokens"):
        assert (await anonymous.get(path, headers=headers)).status_code == 403
    etag = {"If-None-Match": (await tenant.client.get(f"/v1/runs/{run['id']}")).headers["etag"]}
    assert (await anonymous.get(f"/v1/runs/{run['id']}", headers=headers | etag)).status_code == 403
    await tenant.seal(attempt, [])
    assert (await anonymous.get("/v1/me", headers=headers)).status_code == 401


async def test_tokens_are_made_listed_and_revoked(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    made = await tenant.post("/v1/tokens", {"scopes": ["runs:read"], "note": "ci"})
    headers = {"Authorization": f"Bearer {made['secret']}"}
    assert (await anonymous.get("/v1/runs", headers=headers)).status_code == 200
    listed = await tenant.get("/v1/tokens")
    assert made["id"] in [t["id"] for t in listed["data"]]
    assert "secret" not in repr(listed)
    assert (await tenant.client.delete(f"/v1/tokens/{made['id']}")).status_code == 204
    assert (await anonymous.get("/v1/runs", headers=headers)).status_code == 401
    refused = await tenant.post("/v1/tokens", {"scopes": ["root"]}, 422)
    assert refused["type"].endswith("unknown_scope")


async def test_a_session_reads_and_writes_only_from_our_origin(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    here = {"Origin": BASE}
    login = await anonymous.post("/login", json={"token": tenant.secret}, headers=here)
    assert login.status_code == 204
    cookie = login.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "max-age=43200" in cookie
    assert (await anonymous.get("/v1/runs")).status_code == 200
    run = await tenant.run()
    path = f"/v1/runs/{run['id']}/stop"
    assert (await anonymous.post(path, json={"mode": "discard"})).json()["type"].endswith("origin_missing")
    for origin in ("http://evil.test", "null", "http://127.0.0.1:1"):
        answer = await anonymous.post(path, json={"mode": "discard"}, headers={"Origin": origin})
        assert (answer.status_code, answer.json()["type"]) == (403, "urn:workstead:problem:foreign_origin")
    assert (await anonymous.post(path, json={"mode": "discard"}, headers=here)).status_code == 200
    assert (await anonymous.post("/logout", headers=here)).status_code == 303
    assert (await anonymous.get("/v1/runs")).status_code == 401


@pytest.mark.fault(64)
async def test_a_stream_from_a_foreign_origin_is_refused(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    run = await tenant.run()
    await anonymous.post("/login", json={"token": tenant.secret}, headers={"Origin": BASE})
    headers = {"Accept": "text/event-stream", "Origin": "http://evil.test"}
    assert (await anonymous.get(f"/v1/runs/{run['id']}/events", headers=headers)).status_code == 403


async def test_a_session_ends_with_its_token(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    made = await tenant.post("/v1/tokens", {"scopes": ["runs:read"]})
    await anonymous.post("/login", json={"token": made["secret"]}, headers={"Origin": BASE})
    assert (await anonymous.get("/v1/runs")).status_code == 200
    await tenant.client.delete(f"/v1/tokens/{made['id']}")
    assert (await anonymous.get("/v1/runs")).status_code == 401


async def test_a_bad_login_says_nothing_more(anonymous: httpx.AsyncClient) -> None:
    here = {"Origin": BASE}
    assert (await anonymous.post("/login", json={"token": "x"}, headers=here)).status_code == 401
    form = await anonymous.post("/login", data={"token": "x"}, headers=here)
    assert (form.status_code, form.headers["location"]) == (303, "/login?failed=1")
    assert (await anonymous.post("/login", json={"token": 1}, headers=here)).status_code == 422
    assert (await anonymous.post("/login", json={"token": "x"})).status_code == 403
