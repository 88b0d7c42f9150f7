"""What people who rate see and do: files beside each other, a rating by keys, nothing that says whose work it is."""

import asyncio
import hashlib
import re
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, expect

from service.domain.evidence import EvidenceDocument, EvidenceFile, EvidenceImage, Part
from service.store import evidence, gradings, runs
from service.store.campaigns import assignments
from service.store.evidence import Made
from tests.api.helpers import Tenant
from tests.browser import raters
from tests.browser.conftest import PORT, SITE
from tests.browser.heard import Heard
from tests.browser.raters import LABEL, MODEL, SCAFFOLD, campaign, delivered, enter
from tests.browser.test_pages import log_in
from tests.browser.test_previews import ASSETS, png

EVIL = b"""<!doctype html><p id="p">evil</p><script>
const tell = (name, work) => { let how; try { how = String(work()); } catch (e) { how = "refused: " + e.name; }
  document.body.dataset[name] = how; };
tell("cookie", () => document.cookie);
tell("storage", () => localStorage.length);
tell("parent", () => parent.document.title);
tell("frame", () => frameElement.tagName);
tell("top", () => { top.location = "/login"; return "gone"; });
fetch("/v1/rate", { credentials: "include" }).then(() => { document.body.dataset.call = "answered"; },
  (e) => { document.body.dataset.call = "refused: " + e.name; });
</script><button onclick="location = '/v1/rate'">go</button>"""


async def begin(page: Page) -> None:
    """Take the first item, by the keyboard."""
    await expect(page.locator("#next")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#rating")).to_be_visible()


async def rate(page: Page, *keys: str) -> None:
    """Rate what is in hand by keys alone, and wait for what comes next."""
    old = await page.locator("#work").get_attribute("data-assignment")
    assert old
    for key in (*keys, "Control+Enter"):
        await page.keyboard.press(key)
    await expect(page.locator("#work")).not_to_have_attribute("data-assignment", old)


async def document(site: Tenant, run_id: str, *files: EvidenceFile) -> None:
    """Put an evidence document there, as the extractor would."""
    body = EvidenceDocument(files=files).model_dump_json().encode()
    pictures = {i.sha256: i.size_bytes for f in files for i in f.images}
    sha, size = await asyncio.to_thread(site.state.blobs.store_bytes, body)
    async with site.state.db.transaction() as tx:
        digest = (await runs.load(tx, run_id)).deliverable_digest
        row = await evidence.request(tx, site.project_id, digest or "", queued=False)
        await evidence.finish(tx, row.id, Made(sha, size, len(files), 0, 0, 0.1, pictures))


async def three(site: Tenant) -> list[str]:
    """Three deliverables of one agent, whose names tell too much."""
    agent = await raters.agent(site)
    found: list[str] = []
    for n in range(3):
        files = {
            f"output/{LABEL}/{SCAFFOLD} report {n}.md": f"# Report {n}".encode(),
            "output/okapi-9-max.csv": b"a,b\n1,2\n",
        }
        found.append(await delivered(site, await raters.task(site, f"t/site-{n}"), agent, files))
    return found


async def test_two_people_rate_the_same_sample_to_a_majority(browser: Browser, site: Tenant, heard: Heard) -> None:
    sample = await three(site)
    made = await campaign(site, sample)
    people = [await enter(browser, code) for code in made.codes]
    names: list[str] = []
    for (_, page), key in zip(people, ("2", "3"), strict=True):
        assert await page.evaluate("document.cookie") == ""
        assert "#" not in page.url
        await begin(page)
        await expect(page.locator(".pane.main .view")).to_contain_text("Report")
        await page.keyboard.press("]")
        await expect(page.locator(".pane.main table.cells")).to_contain_text("1")
        async with page.expect_download() as download:
            await page.locator(".pane.main .view").get_by_role("link", name="Download").click()
        names.append((await download.value).suggested_filename)
        for _ in sample:
            await rate(page, key)
        await expect(page.get_by_role("heading", name="Nothing left for now")).to_be_visible()
        assert "3 rated" in await page.locator(".bar").inner_text()
    async with site.state.db.reading() as tx:
        verdicts = [v for run_id in sample for v in await gradings.list_for_run(tx, run_id)]
    assert [(v.method, v.score, v.max_score) for v in verdicts] == [("human_panel", 1.0, 1.0)] * 3
    agent_ids = {(await site.get(f"/v1/runs/{run_id}"))["agent"]["id"] for run_id in sample}
    telling = {LABEL, SCAFFOLD, *MODEL.split("/"), "okapi", "zebrafish", "quagga", *sample, *agent_ids, site.project_id}
    lead = await (await browser.new_context()).new_page()
    await log_in(lead, site)
    await lead.get_by_role("link", name="Campaigns").click()
    await lead.get_by_role("link", name="c/one").click()
    await expect(lead.locator("#pairs tbody tr")).to_have_text(re.compile("Person 0, Person 1.*3.*100.0 %", re.DOTALL))
    await expect(lead.locator("#items tbody")).to_contain_text(LABEL)  # the lead is told what tells too much
    await expect(lead.locator(".clocks")).to_contain_text("3 of 3")
    await lead.context.close()
    text = heard.by_raters() + " ".join(names).lower()
    assert text.count("# report") + text.count("report 0") > 3
    assert [word for word in (*telling, *made.codes) if word.lower() in text] == []
    for context, _ in people:
        await context.close()


async def test_an_invitation_works_once(browser: Browser, site: Tenant) -> None:
    made = await campaign(site, await three(site), 1)
    context, _ = await enter(browser, made.codes[0])
    other = await browser.new_context()
    page = await other.new_page()
    await page.goto(f"{SITE}/rate#{made.codes[0]}")
    await expect(page.get_by_role("alert")).to_contain_text("used or over")
    assert page.url == f"{SITE}/rate"  # the code is out of the address
    await page.get_by_label("Code").fill("wsi_wrong")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("used or over")
    await page.goto(f"{SITE}/rate/work")
    assert page.url == f"{SITE}/rate?over=1"
    await other.close()
    await context.close()


@pytest.mark.fault(67, 69, 70)
async def test_each_kind_of_file_is_shown(browser: Browser, site: Tenant) -> None:
    picture = png()
    sha = hashlib.sha256(picture).hexdigest()
    await asyncio.to_thread(site.state.blobs.store_bytes, picture)
    evil_name = 'output/"><img src=x onerror=window.hacked=1>.txt'
    files = {evil_name: b"<script>window.hacked=1</script>", "output/a.png": picture, "output/b.wav": b"RIFF",
             "output/c.webm": b"\x1aE", "output/d.docx": b"PK", "output/e.glb": b"glTF", "output/f.py": b"x = 1\ny = 2\n"}  # fmt: skip
    run_id = await delivered(site, await raters.task(site, "t/kinds"), await raters.agent(site), files)
    image = EvidenceImage(
        label="page 1", source="page", sha256=sha, media_type="image/png", width=1, height=1, size_bytes=len(picture)
    )
    parts = (Part(kind="text", text="Dear client"), Part(kind="hidden", label="comment", text="ignore <b>all</b>"))
    docx = EvidenceFile(
        path="output/d.docx", sha256=sha, size_bytes=2, kind="docx", state="extracted", parts=parts, images=(image,)
    )
    await document(site, run_id, docx)
    made = await campaign(site, [run_id], 1)
    context, page = await enter(browser, made.codes[0])
    await begin(page)
    pane, view = page.locator(".pane.main"), page.locator(".pane.main .view")

    async def choose(name: str) -> None:
        await pane.get_by_role("link", name=name).click()
        await expect(view.locator("h3")).to_contain_text(name)

    await choose("d.docx")
    await expect(view).to_contain_text("Dear client")
    await expect(view).to_contain_text("ignore <b>all</b>")
    await expect(view.get_by_text("not seen by a reader")).to_be_visible()
    assert await view.locator("img").evaluate("(i) => i.decode().then(() => i.naturalWidth)") == 1
    await choose("a.png")
    assert await view.locator("img").evaluate("(i) => i.decode().then(() => i.naturalWidth)") == 1
    await choose("b.wav")
    await expect(view.locator("audio[controls]")).to_have_count(1)
    await choose("c.webm")
    await expect(view.locator("video[controls]")).to_have_count(1)
    await choose("e.glb")
    await expect(view).to_contain_text("no preview of this file")
    await expect(view.locator(".sha")).to_have_text(hashlib.sha256(b"glTF").hexdigest())
    await choose("f.py")
    await expect(view.locator("ol.code li").nth(1)).to_have_text("y = 2")
    await choose("onerror=")
    await expect(view).to_contain_text("<script>window.hacked=1</script>")
    assert await page.evaluate("window.hacked") is None
    brief = page.locator("details.text").nth(1)
    await expect(brief).to_contain_text("[picture: logo]")
    await expect(brief.locator("a, img")).to_have_count(0)
    await expect(page.get_by_text("The total may be in a picture.")).to_be_visible()
    await expect(page.locator(".pane", has_text="Reference").locator(".view")).to_contain_text("index.html")
    await page.get_by_text("Files that came with the brief").click()
    await expect(page.locator("details.inputs table.cells")).to_contain_text("Zürich")
    await context.close()


async def test_a_file_that_comes_late_is_not_shown_in_place_of_a_later_choice(browser: Browser, site: Tenant) -> None:
    files = {"output/a.txt": b"the first file", "output/b.txt": b"the second file"}
    run_id = await delivered(site, await raters.task(site, "t/late"), await raters.agent(site), files)
    context, page = await enter(browser, (await campaign(site, [run_id], 1)).codes[0])
    held, choice = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        if not held.is_set():
            held.set()
            await choice.wait()
        await route.continue_()

    await begin(page)
    pane, view = page.locator(".pane.main"), page.locator(".pane.main .view")
    await expect(view).to_contain_text("the first file")
    await page.route("**/rate/work/*/files/*", late)
    await pane.get_by_role("link", name="b.txt").click()
    await asyncio.wait_for(held.wait(), 10)
    await pane.get_by_role("link", name="a.txt").click()
    await expect(view).not_to_have_attribute("aria-busy", "true")
    async with page.expect_response("**/files/*"):
        choice.set()
    await page.evaluate("new Promise((done) => setTimeout(done, 200))")
    await expect(view).to_contain_text("the first file")
    await expect(view).not_to_have_attribute("aria-busy", "true")
    await context.close()


@pytest.mark.fault(67)
@pytest.mark.parametrize("preview_origin", [None, pytest.param(f"http://localhost:{PORT}", marks=pytest.mark.slow)])
async def test_a_document_runs_apart_and_reaches_nothing(
    browser: Browser, site: Tenant, preview_origin: str | None
) -> None:
    files = ASSETS | {"output/game/img/one.png": png(), f"output/{LABEL}/evil.html": EVIL}
    run_id = await delivered(site, await raters.task(site, "t/game"), await raters.agent(site), files)
    made = await campaign(site, [run_id], 1)
    context, page = await enter(browser, made.codes[0])
    asked: list[str] = []
    context.on("response", lambda response: asked.append(response.url))
    await begin(page)
    pane, view = page.locator(".pane.main"), page.locator(".pane.main .view")
    await view.get_by_role("button", name="Open it as a page").click()  # of index.html, which is shown first
    game = view.frame_locator("iframe")
    await expect(game.locator("#made")).to_have_text("made")
    await expect(game.locator("#made")).to_have_css("color", "rgb(1, 2, 3)")
    await expect(game.locator("body")).to_have_attribute("data-module", "level one")
    await view.get_by_role("button", name="Close it").click()
    await expect(view.locator("iframe")).to_have_count(0)
    await pane.get_by_role("link", name="evil.html").click()
    await expect(view.locator("h3")).to_contain_text("evil.html")
    await view.get_by_role("button", name="Open it as a page").click()
    body = view.frame_locator("iframe").locator("body")
    for name in ("cookie", "storage", "parent", "top"):
        await expect(body).to_have_attribute(f"data-{name}", "refused: SecurityError")
    await expect(body).to_have_attribute("data-frame", "refused: TypeError")
    await expect(body).to_have_attribute("data-call", "refused: TypeError")
    assert page.url == f"{SITE}/rate/work"
    frame = next(f for f in page.frames if "/preview/" in f.url)
    assert frame.url.startswith((preview_origin or SITE) + "/preview/")
    assert LABEL not in frame.url
    # It may go nowhere else either, not even to a page that is ours.
    await body.get_by_role("button", name="go").click()
    await expect(body).not_to_have_attribute("data-cookie", "refused: SecurityError", timeout=15_000)
    assert [url for url in asked if url.endswith(("/v1/rate", "/login"))] == []
    await context.close()


async def test_what_is_sent_without_a_connection_waits_for_one(browser: Browser, site: Tenant) -> None:
    made = await campaign(site, await three(site), 1)
    context, page = await enter(browser, made.codes[0])
    await begin(page)
    first = str(await page.locator("#work").get_attribute("data-assignment"))
    await page.keyboard.press("n")
    await page.keyboard.type("good 123 work")  # the keys of the form are letters here
    await page.reload()
    await expect(page.locator("#notes")).to_have_value("good 123 work")  # the draft is still there
    assert await page.locator("[name=rating]:checked").count() == 0
    await page.locator(".pane.main h2").click()
    await context.set_offline(True)
    await page.keyboard.press("f")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator("#problem")).to_contain_text("Name the flaw")
    await page.locator("#reason").fill("the page is empty")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator("#said")).to_contain_text("Not sent yet")
    await expect(page.locator("#rating button")).to_be_disabled()
    async with site.state.db.reading() as tx:
        assert (await assignments.load(tx, first)).state == "leased"
    await context.set_offline(False)
    await expect(page.locator("#work")).not_to_have_attribute("data-assignment", first)
    async with site.state.db.reading() as tx:
        done = await assignments.load(tx, first)
    wanted: dict[str, Any] = {
        "rating": 1,
        "failed_early": True,
        "reason": "the page is empty",
        "notes": "good 123 work",
        "tags": [],
    }
    assert (done.state, done.rating) == ("submitted", wanted)
    assert done.client_id
    await context.close()


@pytest.mark.slow
async def test_time_counts_while_the_page_is_used(browser: Browser, site: Tenant) -> None:
    made = await campaign(site, await three(site), 1, soft_limit_s=60)
    context, page = await enter(browser, made.codes[0])
    await begin(page)
    timer = page.locator("#timer")
    await page.mouse.move(200, 200)
    await expect(timer).to_have_text(re.compile(r"0:(0[3-9]|[1-5]\d) of about 1 min"), timeout=60_000)
    await expect(timer).not_to_have_class(re.compile("part"))
    await page.clock.install()
    await page.reload()
    await page.clock.fast_forward(61_000)
    await expect(timer).to_have_class(re.compile("part"))  # and nothing is sent by that
    assignment = str(await page.locator("#work").get_attribute("data-assignment"))
    await rate(page, "1", "t", "o")
    async with site.state.db.reading() as tx:
        done = await assignments.load(tx, assignment)
    assert 1 < done.active_s <= done.wall_s
    assert done.rating is not None
    assert done.rating["tags"] == ["technical_integrity", "cannot_open"]
    await context.close()


async def test_skip_and_hand_back(browser: Browser, site: Tenant) -> None:
    made = await campaign(site, await three(site), 1)
    context, page = await enter(browser, made.codes[0])
    await begin(page)
    first = str(await page.locator("#work").get_attribute("data-assignment"))
    await page.get_by_text("Skip it or hand it back").click()
    await page.get_by_role("button", name="Skip it for good").click()
    await expect(page.locator("#problem")).to_contain_text("Say why")
    await page.get_by_label("Why you cannot rate").fill("I know who made it")
    await page.get_by_role("button", name="Skip it for good").click()
    await expect(page.locator("#work")).not_to_have_attribute("data-assignment", first)
    second = str(await page.locator("#work").get_attribute("data-assignment"))
    await page.get_by_text("Skip it or hand it back").click()
    await page.get_by_role("button", name="Hand it back").click()
    await expect(page.locator("#next")).to_be_visible()
    async with site.state.db.reading() as tx:
        one, two = await assignments.load(tx, first), await assignments.load(tx, second)
    assert (one.state, one.reason, two.state) == ("skipped", "I know who made it", "released")
    await page.get_by_role("button", name="Leave").click()
    await page.wait_for_url(f"{SITE}/rate")
    await page.goto(f"{SITE}/rate/work")
    assert page.url == f"{SITE}/rate?over=1"
    await context.close()


@pytest.mark.parametrize("width", [1280, pytest.param(1920, marks=pytest.mark.slow)])
async def test_two_deliverables_are_compared_with_the_reference_beside(
    browser: Browser, site: Tenant, width: int
) -> None:
    agents = [await raters.agent(site), await raters.agent(site, "xerus-agent", "2")]
    task = await raters.task(site, "t/pair")
    both = [await delivered(site, task, agent, {"output/a.md": agent.encode()}) for agent in agents]
    made = await campaign(site, both, 1, form="pairwise", pairs={"agents": agents, "human": False, "per_pair": 1})
    context, page = await enter(browser, made.codes[0], width)
    await begin(page)
    await expect(page.locator(".panes h2")).to_have_text(
        ["Deliverable A", "Deliverable B", "Reference, made by a person"]
    )
    for n in (0, 1):
        await expect(page.locator(".panes .pane").nth(n).locator(".view")).to_contain_text("agt_")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assignment = str(await page.locator("#work").get_attribute("data-assignment"))
    await page.keyboard.press("3")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator("#problem")).to_contain_text("better on the whole")
    await rate(page, "5")
    async with site.state.db.reading() as tx:
        done = await assignments.load(tx, assignment)
    assert done.rating is not None
    assert (done.rating["completion"], done.rating["quality"]) == ("first" if done.swapped else "second", "same")
    await context.close()


async def test_the_lead_invites_takes_back_and_removes(page: Page, browser: Browser, site: Tenant) -> None:
    made = await campaign(site, await three(site), 1)
    page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
    await log_in(page, site)
    await page.goto(f"{SITE}/campaigns/{made.campaign_id}")
    await page.get_by_label("Add a person").fill("Zed <b>")
    await page.get_by_role("button", name="Invite", exact=True).click()
    link = page.locator("#link")
    await expect(link).to_have_value(re.compile(rf"^{SITE}/rate#wsi_"))
    context, rater = await enter(browser, (await link.input_value()).partition("#")[2])
    await begin(rater)
    assignment = str(await rater.locator("#work").get_attribute("data-assignment"))
    await page.reload()
    await expect(page.locator("#raters")).to_contain_text("Zed <b>")
    await page.locator("#in-hand").get_by_role("button", name="Hand back").click()
    await expect(page.locator("#in-hand")).to_have_count(0)
    async with site.state.db.reading() as tx:
        assert (await assignments.load(tx, assignment)).state == "released"
    row = page.locator("#raters tr", has_text="Zed")
    await row.get_by_role("button", name="Invite again").click()
    await expect(link).to_have_value(re.compile("wsi_"))
    await rater.goto(f"{SITE}/rate/work")
    assert rater.url == f"{SITE}/rate?over=1"  # the former session is over
    await row.get_by_role("button", name="Remove").click()
    await expect(row).to_contain_text("removed")
    await page.get_by_role("button", name="Close it").click()
    await expect(page.locator(".status .state")).to_have_text("closed")
    await expect(page.get_by_role("button", name="Remove")).to_have_count(0)
    await context.close()
