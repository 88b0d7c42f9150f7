"""Pages of raters and leads without a browser: who sees them, and what their headers forbid."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from service.api.state import ApiConfig, ApiState
from service.dashboard.app import install
from service.domain.campaigns import CampaignSpec, RaterSpec
from service.domain.judging import JudgeSpec
from service.domain.probes import Cost, ProbeReport
from service.lifecycle.campaigns import making
from service.store import probes
from service.store.campaigns import campaigns, raters
from service.store.rows_campaigns import CampaignRow
from service.wiring.pages import dashboard_for
from tests.api.apps import app_of
from tests.api.helpers import BASE, Tenant, file_entry
from tests.api.test_pages import HERE, log_in

EVIL = "[x](javascript:alert(1)) <script>1</script> ![p](https://pictures.example.com/p.png)"


def client_of(state: ApiState) -> httpx.AsyncClient:
    app = app_of(state)
    install(app, dashboard_for(state))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url=BASE)


@pytest.fixture
async def pages(state: ApiState) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(state) as client:
        yield client


async def rated(tenant: Tenant, people: int = 1) -> tuple[CampaignRow, list[str]]:
    """An open campaign of one deliverable; and its invitations."""
    digest = await tenant.blob(b"by hand")
    task = await tenant.task(instruction=EVIL, hidden=[{"path": "reference/a.md", "sha256": digest, "size_bytes": 7}])
    run = await tenant.post("/v1/runs", {"task": task["id"], "agent": (await tenant.agent())["id"]})
    attempt = await tenant.start(run["id"])
    await tenant.seal(attempt, [file_entry("output/a.html", b"<p>made</p>", "text/html")])
    await tenant.finish(run["id"])
    spec = CampaignSpec.model_validate(
        {"name": "c/one", "form": "human_panel", "instruction": EVIL, "selection": {"where": {"ids": [run["id"]]}}}
    )
    await tenant.blob(EVIL.encode())
    async with tenant.state.db.transaction() as tx:
        row = await making.make(tx, tenant.project_id, spec, "tests")
        added = await raters.add(tx, row, [RaterSpec(name=f"<b>{n}</b>") for n in range(people)])
        await campaigns.open_(tx, row)
    return row, [code for _, code in added if code]


async def join(pages: httpx.AsyncClient, code: str) -> None:
    assert (await pages.post("/rate/session", json={"code": code}, headers=HERE)).status_code == 204


async def taken(pages: httpx.AsyncClient) -> str:
    answer = await pages.post("/v1/rate/next", headers=HERE)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def test_without_a_session_there_is_only_the_way_in(pages: httpx.AsyncClient) -> None:
    for path in ("/rate/work", "/rate/work/asg_1/files/0"):
        answer = await pages.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/rate?over=1")
    assert "Code of your invitation" in (await pages.get("/rate")).text
    for path in ("/campaigns", "/campaigns/cmp_1", "/probes/prb_1"):
        answer = await pages.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")


@pytest.mark.fault(67, 70)
async def test_what_a_raters_pages_may_load(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    _, (code,) = await rated(tenant)
    await join(pages, code)
    before = await pages.get("/rate/work")
    assignment = await taken(pages)
    shown = [before, await pages.get("/rate/work"), await pages.get(f"/rate/work/{assignment}/files/1")]
    for answer in shown:
        assert answer.status_code == 200
        rules = answer.headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'self'"} <= {*rules}
        assert f"frame-src {BASE}/preview/" in rules
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "private, no-store"
        assert answer.text.count("<script") == answer.text.count('<script src="/static/')
        assert not re.search(r"\son[a-z]+=|style=|href=\"javascript|pictures\.example\.com", answer.text)
    assert "&lt;p&gt;made" in shown[2].text


@pytest.mark.fault(57)
async def test_a_rater_sees_what_is_in_hand_and_nothing_else(
    tenant: Tenant, state: ApiState, pages: httpx.AsyncClient
) -> None:
    row, codes = await rated(tenant, 2)
    await join(pages, codes[0])
    mine = await taken(pages)
    async with client_of(state) as other:
        await join(other, codes[1])
        theirs = await taken(other)
        await log_in(other, tenant.secret)
        assert (await other.get(f"/campaigns/{row.id}")).status_code == 200
    for path in (f"{theirs}/files/0", "asg_unknown/files/0", f"{mine}/files/99", f"{mine}/files/-1"):
        assert (await pages.get(f"/rate/work/{path}")).status_code == 404, path
    for path in ("/", f"/campaigns/{row.id}", "/campaigns"):  # a rater is nobody there
        assert (await pages.get(path)).headers["location"] == "/login"
    for path, status in ((f"{mine}/files/1", 200), (f"{theirs}/files/1", 404), (f"{mine}/files/99", 404)):
        assert (await pages.post(f"/v1/rate/{path}/preview", headers=HERE)).status_code == status, path
    assert (await pages.post(f"/v1/rate/{mine}/files/1/preview", headers={"Origin": "null"})).status_code == 403
    await pages.post(f"/v1/rate/{mine}/release", headers=HERE)
    assert (await pages.post(f"/v1/rate/{mine}/files/1/preview", headers=HERE)).status_code == 404
    assert (await pages.get(f"/rate/work/{mine}/files/1")).status_code == 404


async def test_previews_come_from_their_origin(tenant: Tenant, state: ApiState) -> None:
    _, (code,) = await rated(tenant)
    config = ApiConfig(public_url=BASE, preview_origin="http://previews.test")
    async with client_of(ApiState(state.db, state.notifications, state.blobs, config, secrets=state.secrets)) as pages:
        await join(pages, code)
        assignment = await taken(pages)
        policy = (await pages.get("/rate/work")).headers["content-security-policy"]
        assert policy.endswith("frame-src http://previews.test/preview/")
        made = (await pages.post(f"/v1/rate/{assignment}/files/1/preview", headers=HERE)).json()
        assert made["url"].startswith("http://previews.test/preview/wsp_")
        assert (await pages.get(made["url"])).text == "<p>made</p>"
        assert (await pages.get(made["url"].replace("http://previews.test", BASE))).status_code == 404


@pytest.mark.fault(57)
async def test_campaigns_and_probes_of_others_are_unknown(
    tenant: Tenant, other: Tenant, pages: httpx.AsyncClient
) -> None:
    row, _ = await rated(other)
    report = ProbeReport(
        judge=JudgeSpec(model="acme/one"), judge_key="k", reported_models=["<b>one</b>"], plan="p/one@1", method="m",
        method_version="1", prompt="p@1", seed=1, runs=[], cost=Cost(requests=0, input_tokens=0, output_tokens=0),
        concerns=["<i>flips</i>"],
    )  # fmt: skip
    async with tenant.state.db.transaction() as tx:
        mine = await probes.put(tx, tenant.project_id, "op_mine", report)
        theirs = await probes.put(tx, other.project_id, "op_theirs", report)
    await log_in(pages, tenant.secret)
    assert "c/one" not in (await pages.get("/campaigns")).text
    for known, unknown in (
        (f"/campaigns/{row.id}", "/campaigns/cmp_none"),
        (f"/probes/{theirs.id}", "/probes/prb_none"),
    ):
        answers = [await pages.get(known), await pages.get(unknown)]
        assert {a.status_code for a in answers} == {404}
        assert answers[0].text == answers[1].text
    shown = await pages.get(f"/probes/{mine.id}")
    assert "&lt;i&gt;flips" in shown.text
    assert "<b>one" not in shown.text


async def test_who_only_reads_may_not_lead(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    row, _ = await rated(tenant)
    reader = (await tenant.token("gradings:read"))["Authorization"].removeprefix("Bearer ")
    await log_in(pages, reader)
    text = (await pages.get(f"/campaigns/{row.id}")).text
    assert "&lt;b&gt;0&lt;/b&gt;" in text
    assert "data-call" not in text
    blind = (await tenant.token("runs:read"))["Authorization"].removeprefix("Bearer ")
    await log_in(pages, blind)
    assert (await pages.get(f"/campaigns/{row.id}")).status_code == 403


async def test_between_items_the_page_says_what_is_so(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    row, (code,) = await rated(tenant)
    await join(pages, code)
    assert 'id="next"' in (await pages.get("/rate/work")).text
    assert "Nothing left for now" in (await pages.get("/rate/work?none=1")).text
    async with tenant.state.db.transaction() as tx:
        (rater,) = await raters.of_campaign(tx, row.id)
        await raters.qualify(tx, rater.id, passed=False)
    text = (await pages.get("/rate/work")).text
    assert ("nothing further for you" in text, 'id="next"' in text) == (True, False)
    async with tenant.state.db.transaction() as tx:
        await campaigns.close(tx, row)
    text = (await pages.get("/rate/work")).text
    assert ("This campaign is closed" in text, 'id="next"' in text) == (True, False)
    async with tenant.state.db.transaction() as tx:
        await raters.remove(tx, rater)
    assert (await pages.get("/rate/work")).headers["location"] == "/rate?over=1"
