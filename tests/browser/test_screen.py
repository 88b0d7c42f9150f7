"""A real Chromium before a real desktop: it shows the run's picture and moves nothing; a person works through the page."""

import asyncio
import io
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.async_api import Page, expect

from service.api.auth import page_caller
from service.dashboard.app import install
from service.dashboard.screens import VIEWER
from service.dashboard.visitor import Dashboard
from service.domain.run_states import Outcome, Phase
from service.testing.memory_sandbox import MemoryHost
from tests.api.helpers import served
from tests.architecture.repository import ROOT
from tests.browser.conftest import PORT, SITE
from tests.browser.namespace import Namespace
from tests.integration.driving.remote import Remote
from tests.integration.driving.test_on_docker import DockerWorkers
from tests.integration.lifecycle.stage import until
from tests.needs import missing, needs_docker

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]
TERMINAL = (212, 780)
"""Its launcher in the panel."""
RETURN = 0xFF0D
PICTURES = ROOT / ".local" / "pictures"
"""Where pages are kept as PNG, for the README and for people who look at a failure."""


async def keep_picture(page: Page, name: str) -> Path:
    """Save what the page shows as ``.local/pictures/<name>.png``."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    target = PICTURES / f"{name}.png"
    await page.screenshot(path=target, animations="disabled")
    return target


@pytest.fixture
async def remote(namespace: Namespace, database_url: str, tmp_path: Path) -> AsyncIterator[Remote]:
    """Workers on the real engine, with the pages served where the browser is."""
    needs_docker()
    if not VIEWER.is_file():
        missing("no viewer of screens: make browser")
    machine = MemoryHost()
    async with DockerWorkers.open(database_url, tmp_path, machine) as stage:
        stage.host = replace(stage.host, environments=(*stage.host.environments, "desktop"))
        async with Remote.open(stage) as made:
            install(made.app, Dashboard(stage.db, page_caller))
            async with served(made.app, namespace.listen(PORT)):
                yield made
            await made.kill_worker()
        assert isinstance(stage, DockerWorkers)
        for backend in stage.backends:
            for sandbox_id in await backend.list_ids():
                await backend.remove(sandbox_id)
            await backend.close()
    machine.close()


@pytest.fixture
def site(remote: Remote) -> Remote:
    """For fixture ``page``: whose pages these are."""
    return remote


async def begun(remote: Remote, kind: str) -> str:
    agent = await remote.stage.agent(f"{kind}-on-desktop", kind=kind, surface="desktop")
    run = await remote.stage.submit(await remote.stage.task(), agent, limits={"wall_clock_s": 600})
    await remote.start_worker(run.id)
    await until(lambda: remote.stage.has_event(run.id, "run.ready"), 60)
    return run.id


@pytest.fixture
def on_purpose(on_purpose: tuple[str, ...]) -> tuple[str, ...]:
    """These tests stop a viewer, and leave its page, in the middle of what it does; its library says so."""
    return *on_purpose, "Got data while in an invalid state", "WebSocket is closed before the connection is established"


async def log_in(page: Page, remote: Remote, path: str) -> None:
    await page.goto(SITE)
    await page.get_by_label("API token").fill(remote.token)
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url(f"{SITE}/")
    await page.goto(SITE + path)


async def act(remote: Remote, run_id: str, *actions: dict[str, Any]) -> Any:
    body = {"actions": list(actions), "screenshot": None}
    return await remote.call("POST", f"/v1/runs/{run_id}/desktop/actions", json=body)


async def cursor(remote: Remote, run_id: str) -> tuple[int, int]:
    state = (await act(remote, run_id, {"type": "cursor_position"}))["state"]
    return state["cursor_x"], state["cursor_y"]


async def screenshot(remote: Remote, run_id: str) -> Image.Image:
    data = await remote.call("GET", f"/v1/runs/{run_id}/desktop/screenshot?format=png&cursor=false", lease="")
    return Image.open(io.BytesIO(data)).convert("RGB")


async def shown(page: Page) -> Image.Image:
    """Return what the viewer has drawn, in the screen's own pixels."""
    url = str(await page.evaluate("document.querySelector('#screen canvas').toDataURL('image/png')"))
    return Image.open(io.BytesIO(await asyncio.to_thread(_decoded, url))).convert("RGB")


def _decoded(url: str) -> bytes:
    import base64

    return base64.b64decode(url.partition(",")[2])


def difference(one: Image.Image, other: Image.Image) -> float:
    """Mean difference of a channel, 0 to 255; pictures may have gone through JPEG on their way."""
    if one.size != other.size:
        return 255.0
    pairs = zip(one.tobytes(), other.tobytes(), strict=True)
    return sum(abs(a - b) for a, b in pairs) / (one.width * one.height * 3)


async def rests(page: Page) -> bool:
    """Tell whether the picture stays as it is for a second, but for a caret."""
    before = await shown(page)
    await asyncio.sleep(1)
    return difference(before, await shown(page)) < 0.1


async def typed(remote: Remote, run_id: str) -> list[int]:
    """Return the keys that the log says a person pressed."""
    events = await remote.stage.events(run_id, "desktop.input")
    return [r["key"] for e in events for r in e.payload.get("records", []) if r.get("down")]


async def same(page: Page, remote: Remote, run_id: str) -> bool:
    return difference(await shown(page), await screenshot(remote, run_id)) < 2.0


async def test_a_run_is_watched_live_and_its_cursor_stays(page: Page, remote: Remote) -> None:
    run_id = await begun(remote, "remote")
    await remote.claim(run_id)
    await log_in(page, remote, f"/runs/{run_id}")
    await page.get_by_role("link", name="Watch it live").click()
    await expect(page.locator("#screen-state")).to_have_text("live", timeout=20_000)
    await until(lambda: same(page, remote, run_id))
    before = await shown(page)
    assert before.size == (1280, 800)
    await act(remote, run_id, {"type": "click", "x": TERMINAL[0], "y": TERMINAL[1]})
    await until(lambda: _window(remote, run_id))
    await until(lambda: same(page, remote, run_id))
    assert difference(before, await shown(page)) > 5.0
    await expect(page.locator("#log")).to_contain_text(f"click {TERMINAL[0]},{TERMINAL[1]}")
    await act(remote, run_id, {"type": "move", "x": 333, "y": 222})

    box = await page.locator("#screen canvas").bounding_box()
    assert box is not None
    await page.mouse.click(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.7)
    await page.keyboard.type("exit\n")
    # A viewer whose own lock is off sends it all, and none of it arrives.
    await page.evaluate(
        """async () => {
            const { Viewer } = await import("/static/viewer.js");
            const place = document.getElementById("screen");
            place.replaceChildren();
            place.dataset.state = "";
            window.second = new Viewer(place, null);
        }"""
    )
    await expect(page.locator("#screen")).to_have_attribute("data-state", "live", timeout=20_000)
    await page.evaluate("window.second.rfb.viewOnly = false")
    await page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.6)
    await page.keyboard.type("exit\n")
    await page.evaluate("window.second.stop('seen')")

    async def dropped() -> bool:
        closed = [e.payload for e in await remote.stage.events(run_id, "desktop.view") if "dropped" in e.payload]
        return any(p["dropped"].get("pointer") and p["dropped"].keys() & {"key", "extended_key"} for p in closed)

    await until(dropped)
    assert await cursor(remote, run_id) == (333, 222)
    assert await _window(remote, run_id)
    await page.reload()
    await expect(page.locator("#screen-state")).to_have_text("live", timeout=20_000)
    await until(lambda: same(page, remote, run_id))
    await keep_picture(page, "screen")
    await remote.call("POST", f"/v1/runs/{run_id}/stop", json={"mode": "discard"})
    await expect(page.locator("#screen-state")).to_have_text("the run is over", timeout=20_000)


async def _window(remote: Remote, run_id: str) -> bool:
    state = (await act(remote, run_id, {"type": "windows"}))["state"]
    return any(re.search("terminal", w["title"] + w["program"], re.IGNORECASE) for w in state["windows"])


@pytest.mark.slow
async def test_a_person_does_an_assignment_through_the_page(page: Page, remote: Remote) -> None:
    run_id = await begun(remote, "person")
    page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
    await log_in(page, remote, f"/runs/{run_id}")
    await page.get_by_role("link", name="Do the assignment").click()
    await expect(page.get_by_text("Add up input.csv.")).to_be_visible()
    await expect(page.get_by_role("link", name="input.csv")).to_be_visible()
    await page.get_by_role("button", name="Take the assignment").click()
    await expect(page.locator("#screen-state")).to_have_text("live", timeout=20_000)
    await until(lambda: same(page, remote, run_id))
    before = await shown(page)
    canvas = page.locator("#screen canvas")
    box = await canvas.bounding_box()
    assert box is not None
    scale = box["width"] / 1280
    await page.mouse.click(box["x"] + TERMINAL[0] * scale, box["y"] + TERMINAL[1] * scale)

    async def changed() -> bool:
        return difference(before, await shown(page)) > 5.0

    await until(changed)
    await until(lambda: rests(page))  # with the shell's prompt
    await page.get_by_role("button", name="Pause").click()
    await expect(page.locator("#facts")).to_contain_text("the clock stands still")
    await page.reload()  # whoever comes back finds the assignment still theirs
    await page.get_by_role("button", name="Go on").click()
    await expect(page.locator("#facts .state")).to_have_text("running")
    await expect(page.locator("#screen-state")).to_have_text("live", timeout=20_000)
    await canvas.click(position={"x": 640 * scale, "y": 400 * scale})
    answer = r"""echo '{"total": 42, "name": "Z\u00fcrich"}' > /workspace/output/answers.json"""
    await page.keyboard.type(answer + "\n", delay=15)

    async def entered() -> bool:
        return RETURN in await typed(remote, run_id)

    await until(entered)
    await until(lambda: rests(page))
    await keep_picture(page, "work")
    await page.get_by_role("button", name="Finish").click()
    run = await remote.end(run_id)
    assert (run.phase, run.outcome, run.score) == (Phase.DONE, Outcome.GRADED, 2.0)
    keys = [key for key in await typed(remote, run_id) if key < 256]
    assert bytes(keys).decode() == answer
    assert [e.payload["action"] for e in await remote.stage.events(run_id, "driver")] == ["claimed", "finished"]
