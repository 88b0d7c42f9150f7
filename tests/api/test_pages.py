"""Pages without a browser: who sees them, what their headers forbid, what they escape."""

from collections.abc import AsyncIterator

import httpx
import pytest

from service.api.auth import page_caller
from service.api.state import ApiState
from service.dashboard.app import install
from service.dashboard.visitor import Dashboard
from service.domain.run_states import Phase
from service.store import runs
from tests.api.apps import app_of
from tests.api.helpers import BASE, Tenant, file_entry
from tests.api.test_votes import judged

HERE = {"Origin": BASE}


@pytest.fixture
async def pages(state: ApiState) -> AsyncIterator[httpx.AsyncClient]:
    app = app_of(state)
    install(app, Dashboard(state.db, page_caller))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        yield client


async def log_in(pages: httpx.AsyncClient, secret: str) -> None:
    answer = await pages.post("/login", data={"token": secret}, headers=HERE)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_strangers_are_sent_to_the_login(pages: httpx.AsyncClient) -> None:
    for method, path in (("GET", "/"), ("GET", "/runs/run_1"), ("POST", "/runs/run_1/stop")):
        answer = await pages.request(method, path, headers=HERE)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login"), path
    assert (await pages.get("/login")).status_code == 200


async def test_no_page_may_run_foreign_or_inline_script(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    run = await tenant.run()
    await log_in(pages, tenant.secret)
    for path in ("/login", "/", f"/runs/{run['id']}", "/runs/unknown"):
        answer = await pages.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["cache-control"] == "private, no-store"
        assert "style=" not in answer.text
        assert " on" + "click" not in answer.text
        assert answer.text.count("<script") == answer.text.count('<script src="/static/')
    for name in ("live.js", "style.css", "icon.svg"):
        assert (await pages.get(f"/static/{name}")).status_code == 200
    assert (await pages.get("/static/../app.py")).status_code == 404


@pytest.mark.fault(57)
async def test_foreign_runs_are_unknown(tenant: Tenant, other: Tenant, pages: httpx.AsyncClient) -> None:
    theirs = await other.run()
    await log_in(pages, tenant.secret)
    known, unknown = await pages.get(f"/runs/{theirs['id']}"), await pages.get("/runs/run_unknown")
    assert (known.status_code, known.text) == (404, unknown.text)
    assert (await pages.post(f"/runs/{theirs['id']}/stop", headers=HERE)).status_code == 404
    assert theirs["id"] not in (await pages.get("/")).text
    assert (await other.get(f"/v1/runs/{theirs['id']}"))["phase"] == "queued"


async def test_scopes_hold_on_pages_too(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    run = await tenant.run()
    made = await tenant.post("/v1/tokens", {"scopes": ["runs:read"]})
    await log_in(pages, made["secret"])
    text = (await pages.get(f"/runs/{run['id']}")).text
    assert "Stop and grade" not in text
    assert (await pages.post(f"/runs/{run['id']}/stop", headers=HERE)).status_code == 403
    blind = await tenant.post("/v1/tokens", {"scopes": ["tasks:read"]})
    await log_in(pages, blind["secret"])
    assert (await pages.get("/")).status_code == 403


@pytest.mark.fault(64)
async def test_a_stop_from_elsewhere_does_nothing(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    run = await tenant.run()
    await log_in(pages, tenant.secret)
    for headers in ({"Origin": "http://evil.test"}, {"Origin": "null"}, {}):
        assert (await pages.post(f"/runs/{run['id']}/stop", headers=headers)).status_code == 403
    assert (await tenant.get(f"/v1/runs/{run['id']}"))["phase"] == "queued"
    assert (await pages.post(f"/runs/{run['id']}/stop", headers=HERE)).status_code == 303
    assert (await tenant.get(f"/v1/runs/{run['id']}"))["phase"] == "done"


@pytest.mark.fault(16, 69)
async def test_names_are_escaped_and_made_visible(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    await tenant.seal(attempt, [file_entry('output/"><img src=x>\u202egnp.exe', b"x")])
    await log_in(pages, tenant.secret)
    text = (await pages.get(f"/runs/{run['id']}")).text
    assert "<img" not in text
    assert "\u202e" not in text
    assert "&#34;&gt;&lt;img src=x&gt;⟨U+202E⟩gnp.exe" in text


async def test_a_run_that_waits_says_why_on_its_page_and_in_the_list(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    task = await tenant.task(name="t/wait", environment="nowhere")
    agent = await tenant.agent()
    run = await tenant.post("/v1/runs", {"task": task["id"], "agent": agent["id"]})
    await log_in(pages, tenant.secret)
    for path in (f"/runs/{run['id']}", "/?phase=queued"):
        page = (await pages.get(path)).text
        assert "no host" in page, path
        assert "· place " in page, path
    async with tenant.state.db.transaction() as tx:
        await runs.set_phase(tx, run["id"], Phase.HELD, hold={"reason": "test", "detail": "<i>held</i> by hand"})
    page = (await pages.get(f"/runs/{run['id']}")).text
    assert "held: &lt;i&gt;held&lt;/i&gt; by hand" in page
    assert "· place " not in page


async def test_a_verdict_shows_its_plan_its_judges_and_what_people_say(
    tenant: Tenant, pages: httpx.AsyncClient
) -> None:
    grading = await tenant.get(f"/v1/gradings/{await judged(tenant)}")
    path = f"/v1/gradings/{grading['id']}"
    await tenant.post(f"{path}/override", {"score": 4, "reason": "All <b>there</b>.", "author": "Ada\u202e"})
    await tenant.post(f"{path}/contest", {"reason": "Is it?"})
    await log_in(pages, tenant.secret)
    text = (await pages.get(f"/runs/{grading['run_id']}")).text
    for shown in (
        "plan task@1, round 1",
        "acme/one#12345678: 3 votes",
        "2 / 4",
        "4 / 4",
        "Contested by tok_",
        "Is it?",
    ):
        assert shown in text
    assert "by Ada⟨U+202E⟩: All &lt;b&gt;there&lt;/b&gt;." in text
