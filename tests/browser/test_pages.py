"""What a person sees and does: log in, find a run, watch it, stop it, read its verdict, take its files."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.tasks import GraderSpec
from service.domain.verdicts import Verdict, VerdictState
from service.store import gradings, runs
from tests.api.helpers import Tenant, file_entry
from tests.browser.conftest import SITE

CRITERIA: list[dict[str, Any]] = [
    {"id": "total", "score": 1.0, "max_score": 1.0, "passed": True, "reason": "equal"},
    {"id": "<b>name</b>", "score": 0.0, "max_score": 1.0, "passed": False, "reason": "expected \u202eesrever"},
]


async def log_in(page: Page, tenant: Tenant) -> None:
    await page.goto(SITE)
    assert page.url == f"{SITE}/login"
    await page.get_by_label("API token").fill(tenant.secret)
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url(f"{SITE}/")


async def decide(tenant: Tenant, run_id: str, verdict: Verdict) -> None:
    async with tenant.state.db.transaction() as tx:
        rows = await gradings.enqueue(tx, await runs.load(tx, run_id), [GraderSpec(method="exact")])
        for row in rows:
            await gradings.finish(tx, row.id, verdict)


async def test_login(page: Page, site: Tenant) -> None:
    await page.goto(f"{SITE}/runs/run_unknown")
    assert page.url == f"{SITE}/login"
    await page.get_by_label("API token").fill("wst_wrong")
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("alert")).to_contain_text("unknown, expired or revoked")
    await log_in(page, site)
    cookies = await page.context.cookies()
    assert [(c.get("httpOnly"), c.get("sameSite"), c.get("name")) for c in cookies] == [(True, "Strict", "workstead")]
    assert await page.evaluate("document.cookie") == ""
    await expect(page.get_by_text("No runs yet")).to_be_visible()
    await page.get_by_role("button", name="Log out").click()
    await page.wait_for_url(f"{SITE}/login")
    await page.goto(SITE)
    assert page.url == f"{SITE}/login"


async def test_run_list(page: Page, site: Tenant) -> None:
    made = [(await site.run(sample=i + 1))["id"] for i in range(52)]
    for run_id in made[:2]:
        await site.finish(run_id)
    await log_in(page, site)
    await expect(page.locator("tbody tr")).to_have_count(50)
    await page.get_by_role("link", name="Older runs").click()
    await expect(page.locator("tbody tr")).to_have_count(2)
    await page.goto(SITE)
    await page.get_by_role("link", name="done").click()
    await expect(page.locator("tbody tr")).to_have_count(2)
    await expect(page.locator("tbody .state").first).to_have_text("ungraded")
    bad = await page.goto(f"{SITE}/?cursor=AAAA")
    assert bad is not None
    assert bad.status == 422


async def test_a_run_is_watched_from_start_to_verdict(page: Page, site: Tenant, tmp_path: Path) -> None:
    run = await site.run()
    await log_in(page, site)
    await page.get_by_role("link", name="t/one").click()
    log = page.locator("#log")
    await expect(log).to_contain_text("phase=queued")
    await expect(page.locator("#stream-state")).to_have_text("live")
    attempt = await site.start(run["id"])
    await expect(page.locator("#facts .state")).to_have_text("running")
    await site.say(attempt, "reading invoices.xlsx\n", "half a line")
    await expect(log).to_contain_text("half a line")
    link = ArtifactEntry("output/link", EntryKind.SYMLINK, link_target="/etc/passwd")
    await site.seal(attempt, [file_entry("output/answers.json", b"{}", "application/json"), (link, None)])
    await expect(page.locator("#results")).to_contain_text("skipped symlink")
    await decide(site, run["id"], Verdict(VerdictState.GRADED, 1.0, 2.0, criteria=CRITERIA))
    await expect(page.locator("#stream-state")).to_have_text("ended")
    await expect(page.locator("#results")).to_contain_text("1 / 2")
    await expect(page.locator("#facts .state")).to_have_text("graded")
    row = page.locator("#results tr", has_text="<b>name</b>")
    await expect(row).to_contain_text("expected ⟨U+202E⟩esrever")
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    async with page.expect_download() as download:
        await page.get_by_role("link", name="output/answers.json").click()
    target = tmp_path / "file"
    await (await download.value).save_as(target)
    assert target.read_bytes() == b"{}"
    await page.reload()
    await expect(log).to_contain_text("reading invoices.xlsx")
    await expect(page.locator("#stream-state")).to_have_text("ended")


HOLD_THE_FIRST = """
const ask = window.fetch;
window.fetch = async (what, ...options) => {
  const answer = await ask(what, ...options);
  if (what === location.pathname && !window.release) {
    await new Promise((go) => {
      window.release = go;
      console.log("held");
    });
  }
  return answer;
};
"""


async def test_an_older_state_that_comes_late_does_not_stay(page: Page, site: Tenant) -> None:
    run = await site.run()
    await log_in(page, site)
    await page.add_init_script(HOLD_THE_FIRST)
    await page.goto(f"{SITE}/runs/{run['id']}")
    async with page.expect_console_message(lambda message: message.text == "held"):
        attempt = await site.start(run["id"])
    await site.seal(attempt, [file_entry("output/answers.json", b"{}", "application/json")])
    await decide(site, run["id"], Verdict(VerdictState.GRADED, 1.0, 2.0, criteria=CRITERIA))
    await expect(page.locator("#stream-state")).to_have_text("ended")
    await asyncio.sleep(1)  # time for whatever else would be asked before the first answer
    await page.evaluate("window.release()")
    await expect(page.locator("#facts .state")).to_have_text("graded")
    await asyncio.sleep(1)
    await expect(page.locator("#facts .state")).to_have_text("graded")


async def test_stop(page: Page, site: Tenant) -> None:
    run = await site.run()
    await log_in(page, site)
    await page.goto(f"{SITE}/runs/{run['id']}")
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator("#facts")).to_contain_text("cancelled")
    assert (await site.get(f"/v1/runs/{run['id']}"))["outcome"] == "cancelled"


@pytest.mark.fault(67, 69, 99)
async def test_hostile_text_is_only_text(page: Page, site: Tenant) -> None:
    run = await site.run(labels={"x": "<script>"})
    attempt = await site.start(run["id"])
    evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
    codes = "\x1b]0;title\x07\x1b]52;c;aGk=\x07\x1b[2J\u202eabc\u2028\x00\r\n"
    await log_in(page, site)
    await page.goto(f"{SITE}/runs/{run['id']}")
    await site.say(attempt, evil + "\n", codes)
    name = 'output/"><img src=x onerror=window.hacked=1>.html'
    await site.seal(attempt, [file_entry(name, b"<script>opener.hacked=1</script>", "text/html")])
    await site.finish(run["id"])
    log = page.locator("#log")
    await expect(log).to_contain_text(evil)
    await expect(log).to_contain_text("␛]52;c;aGk=␇␛[2J⟨U+202E⟩abc⟨U+2028⟩")
    await expect(page.locator("#results")).to_contain_text(name)
    async with page.expect_download() as download:
        await page.get_by_role("link", name="onerror").click()
    assert (await download.value).suggested_filename.endswith(".html")
    assert await page.evaluate("window.hacked") is None
    assert await page.locator("img").count() == 0
    assert await page.title() == "t/one · Workstead"


async def test_the_page_stays_small(page: Page, site: Tenant) -> None:
    run = await site.run()
    attempt = await site.start(run["id"])
    await log_in(page, site)
    await page.goto(f"{SITE}/runs/{run['id']}")
    await expect(page.locator("#stream-state")).to_have_text("live")
    for first in range(0, 12_000, 400):
        await site.say(attempt, *[f"line {first + i} {'x' * 80}\n" for i in range(400)], first=first)
        await asyncio.sleep(0)
    await site.finish(run["id"])
    await expect(page.locator("#stream-state")).to_have_text("ended", timeout=20_000)
    await expect(page.locator("#log")).to_contain_text("line 11999")
    assert await page.evaluate("document.getElementById('log').childNodes.length") <= 4001
    assert await page.evaluate("document.getElementById('log').textContent.length") <= 530_000
    assert await page.locator("#log .cut").count() == 1
    await page.reload()
    await expect(page.get_by_text("The last 2000 of")).to_be_visible()


async def test_reconnects_where_it_was(page: Page, site: Tenant) -> None:
    run = await site.run()
    attempt = await site.start(run["id"])
    await log_in(page, site)
    await page.goto(f"{SITE}/runs/{run['id']}")
    await site.say(attempt, "before\n")
    await expect(page.locator("#log")).to_contain_text("before")
    await page.context.set_offline(True)
    await page.context.set_offline(False)
    await site.say(attempt, "after\n", first=1)
    await expect(page.locator("#log")).to_contain_text("after", timeout=15_000)
    text = await page.locator("#log").inner_text()
    assert (text.count("before"), text.count("after")) == (1, 1)
