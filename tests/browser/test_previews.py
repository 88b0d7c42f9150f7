"""Documents that agents delivered, in a real Chromium: they show themselves whole, and reach nothing of ours."""

import struct
import zlib
from typing import Any

import pytest
from playwright.async_api import Page, expect

from service.store import previews
from service.store.previews import Tree
from tests.api.helpers import Tenant, file_entry
from tests.browser.conftest import SITE
from tests.browser.test_pages import log_in

GAME = b"""<!doctype html><html><head><meta charset="utf-8"><title>game</title>
<link rel="stylesheet" href="css/style.css"></head><body>
<p id="made">no script</p><img id="picture" src="img/one.png"><iframe src="inner.html"></iframe>
<script src="js/plain.js"></script><script type="module" src="js/module.js"></script>
<script>document.body.dataset.inline = "ran";</script>
</body></html>"""
ASSETS = {
    "output/game/index.html": GAME,
    "output/game/inner.html": b"<p>inner</p>",
    "output/game/css/style.css": b"#made { color: rgb(1, 2, 3); }",
    "output/game/js/plain.js": b"document.getElementById('made').textContent = 'made';",
    "output/game/js/module.js": b"""import { level } from './level.js';
        const data = await (await fetch('../game/data/level.json')).json();
        document.body.dataset.module = level + data.name;""",
    "output/game/js/level.js": b"export const level = 'level ';",
    "output/game/data/level.json": b'{"name": "one"}',
}
# What a hostile document tries; each answer is how it went.
TRIES = """async () => {
    const out = {};
    const how = async (name, work) => {
        try { out[name] = String(await work()); } catch (error) { out[name] = "refused: " + error.name; }
    };
    await how("origin", () => self.origin);
    await how("cookie", () => document.cookie || "none");
    await how("localStorage", () => localStorage.length);
    await how("sessionStorage", () => sessionStorage.length);
    await how("indexedDB", () => new Promise((ok, no) => {
        const asked = indexedDB.open("x");
        asked.onsuccess = () => ok("open");
        asked.onerror = () => no(asked.error);
    }));
    await how("worker", () => navigator.serviceWorker.register("sw.js"));
    for (const path of ["/v1/me", "/v1/runs", "/static/live.js", "/rate/work"]) {
        await how("fetch " + path, async () => (await fetch(path, { credentials: "include" })).status);
        await how("blind " + path, async () => (await fetch(path, { credentials: "include", mode: "no-cors" })).type);
    }
    await how("socket", () => new Promise((ok, no) => {
        const socket = new WebSocket(location.href.replace(/^http/, "ws").replace(/preview.*/, "v1/x"));
        socket.onopen = () => ok("open");
        socket.onerror = () => no(new Error("closed"));
    }));
    await how("elsewhere", async () => (await fetch("http://127.0.0.1:1/")).status);
    await how("picture", () => new Promise((ok, no) => {
        const picture = new Image();
        picture.onload = () => ok("loaded");
        picture.onerror = () => no(new Error("not loaded"));
        picture.src = "/static/icon.svg";
    }));
    await how("popup", () => window.open("/login") === null ? "none" : "open");
    return out;
}"""


def png() -> bytes:
    """One pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\1\2\3")) + chunk(b"IEND", b"")
    )


async def previewed(site: Tenant, files: dict[str, bytes]) -> str:
    """Deliver the files; return the URL that they lie below."""
    run = await site.run()
    attempt = await site.start(run["id"])
    await site.seal(attempt, [file_entry(path, data) for path, data in files.items()])
    async with site.state.db.transaction() as tx:
        tree = Tree(site.project_id, "deliverable", run["id"])
        capability, _ = await previews.grant(tx, site.state.secrets, tree)
    return f"{SITE}/preview/{capability}"


@pytest.mark.fault(67)
async def test_a_document_of_many_files_is_whole(page: Page, site: Tenant) -> None:
    base = await previewed(site, ASSETS | {"output/game/img/one.png": png()})
    await page.goto(f"{base}/output/game/index.html")
    await expect(page.locator("#made")).to_have_text("made")
    await expect(page.locator("#made")).to_have_css("color", "rgb(1, 2, 3)")
    await expect(page.locator("body")).to_have_attribute("data-inline", "ran")
    await expect(page.locator("body")).to_have_attribute("data-module", "level one")
    assert await page.evaluate("document.getElementById('picture').naturalWidth") == 1
    await expect(page.frame_locator("iframe").get_by_text("inner")).to_be_visible()


@pytest.mark.fault(67, 68)
@pytest.mark.parametrize("name", ["evil.html", "evil.svg", pytest.param("evil.xhtml", marks=pytest.mark.slow)])
async def test_its_scripts_reach_nothing_of_ours(page: Page, site: Tenant, name: str) -> None:
    body = {
        "evil.html": b"<p>evil</p>",
        "evil.svg": b'<svg xmlns="http://www.w3.org/2000/svg"><text y="20">evil</text></svg>',
        "evil.xhtml": b'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>evil</p></body></html>',
    }[name]
    base = await previewed(site, {name: body, "sw.js": b""})
    await log_in(page, site)
    other = await page.context.new_page()  # what is refused is told on the console
    await other.goto(f"{base}/{name}")
    went: dict[str, Any] = await other.evaluate(TRIES)
    assert (went.pop("origin"), went.pop("popup")) == ("null", "none")
    assert {k: v for k, v in went.items() if not v.startswith("refused: ")} == {}
    assert len(went) == 16
    assert await page.evaluate("async () => (await fetch('/v1/me')).status") == 200  # our own page reaches it
