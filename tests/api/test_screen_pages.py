"""The pages with a screen, without a browser: who sees them, what they say, what their headers forbid."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.dashboard import screens
from service.dashboard.app import STATIC
from service.domain.run_states import AttemptState
from service.store import attempts, hosts
from service.store.rows import HostRow
from tests.api.helpers import Tenant
from tests.api.test_pages import HERE, log_in, pages

__all__ = ["pages"]
EVIL = "\x1b]0;x\x07<script>alert(1)</script>"


async def screened(tenant: Tenant, kind: str, surface: str = "desktop", instruction: str = "work") -> Any:
    """A queued run of a driver from outside, on a screen."""
    scaffold = {"name": f"by-{kind}-{surface}", "version": "1", "kind": kind, "surface": surface}
    answer = await tenant.client.post("/v1/scaffolds", json=scaffold)
    assert answer.status_code in (200, 201), answer.text
    answer = await tenant.client.post("/v1/agents", json={"scaffold": f"by-{kind}-{surface}@1"})
    task = await tenant.post("/v1/tasks", {"name": f"t/{kind}", "instruction": instruction})
    return await tenant.post("/v1/runs", {"task": task["id"], "agent": answer.json()["id"]})


async def test_who_is_not_signed_in_or_may_not_is_sent_away(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    run = await screened(tenant, "person")
    for page in ("screen", "work"):
        answer = await pages.get(f"/runs/{run['id']}/{page}", headers=HERE)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    reader = (await tenant.token("runs:read"))["Authorization"].removeprefix("Bearer ")
    await log_in(pages, reader)
    assert (await pages.get(f"/runs/{run['id']}/screen")).status_code == 200
    assert (await pages.get(f"/runs/{run['id']}/work")).status_code == 403
    assert f"/runs/{run['id']}/work" not in (await pages.get(f"/runs/{run['id']}")).text


@pytest.mark.fault(57)
async def test_foreign_runs_and_runs_without_a_screen_are_the_same(
    tenant: Tenant, other: Tenant, pages: httpx.AsyncClient
) -> None:
    theirs, bare = await screened(other, "person"), await tenant.run()
    await log_in(pages, tenant.secret)
    for page in ("screen", "work"):
        answers = [await pages.get(f"/runs/{i}/{page}") for i in (theirs["id"], bare["id"], "run_none")]
        assert {(a.status_code, a.text) for a in answers} == {(404, answers[0].text)}
    assert "/screen" not in (await pages.get(f"/runs/{bare['id']}")).text


async def test_an_agents_screen_is_watched_only(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    run = await screened(tenant, "remote")
    await log_in(pages, tenant.secret)
    answer = await pages.get(f"/runs/{run['id']}/work")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{run['id']}/screen")
    text = (await pages.get(f"/runs/{run['id']}")).text
    assert (f"/runs/{run['id']}/screen" in text, f"/runs/{run['id']}/work" in text) == (True, False)


async def test_pictures_are_all_that_these_pages_may_have_besides(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    run = await screened(tenant, "person", instruction=EVIL)
    await log_in(pages, tenant.secret)
    plain = (await pages.get(f"/runs/{run['id']}")).headers["content-security-policy"]
    for page in ("screen", "work"):
        answer = await pages.get(f"/runs/{run['id']}/{page}")
        assert answer.headers["content-security-policy"] == plain.replace("img-src 'self'", "img-src 'self' data:")
        assert answer.text.count("<script") == answer.text.count('<script src="/static/')
        assert not re.search(r"\son[a-z]+=|style=|\x1b", answer.text)


@pytest.mark.parametrize("there", [True, False])
async def test_without_a_viewer_the_page_says_so(
    tenant: Tenant, pages: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, there: bool
) -> None:
    viewer = tmp_path / "rfb.js"
    if there:
        viewer.touch()
    monkeypatch.setattr(screens, "VIEWER", viewer)
    run = await screened(tenant, "person")
    await log_in(pages, tenant.secret)
    for page in ("screen", "work"):
        text = (await pages.get(f"/runs/{run['id']}/{page}")).text
        assert ('type="module"' in text, "There is no viewer on this server" in text) == (there, not there)
    assert screens.VIEWER != STATIC / "vendor" / "novnc" / "core" / "rfb.js"


async def test_a_clock_that_stands_still_is_shown(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    run = await screened(tenant, "person")
    async with tenant.state.db.transaction() as tx:
        host = HostRow("host-1", "epoch-1", 100, ("runc",), ("base", "desktop"))
        await hosts.register(tx, host)
        (attempt,) = [a for a in await attempts.claim(tx, host, 100) if a.run_id == run["id"]]
        attempt = await attempts.advance(tx, attempt, AttemptState.BOUND, sandbox_id="box", runtime="runc")
        await attempts.advance(tx, attempt, AttemptState.RUNNING, deadline_in_s=600)
    await tenant.post(f"/v1/runs/{run['id']}/claim", {"holder": "Ada"})
    await log_in(pages, tenant.secret)
    text = (await pages.get(f"/runs/{run['id']}/work")).text
    assert "taken by Ada" in text
    assert "data-until=" in text
    await tenant.post(f"/v1/runs/{run['id']}/pause", {}, 200)
    text = (await pages.get(f"/runs/{run['id']}/work")).text
    assert re.search(r"the clock stands still, 9 min 5\d s left", text)
    assert "data-until=" not in text
