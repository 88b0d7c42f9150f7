"""A remote driver on a screen: API, a worker's bridge, and a stand-in for the action server in a sandbox of processes."""

import asyncio
import base64
import io
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ImageContent, TextContent
from PIL import Image

from service.desktop.desktops import Desktops
from service.domain.run_states import EndedBecause, StopMode
from service.store.rows import RunRow
from service.testing import fake_deskd
from tests.api.helpers import served
from tests.integration.driving.remote import Remote
from tests.integration.driving.test_mcp import session
from tests.integration.lifecycle.stage import Stage, until
from workstead.aio import AsyncClient
from workstead.errors import Conflict, Invalid, NotFound

PROGRAM = (sys.executable, "-I", str(Path(fake_deskd.__file__)))
TYPE: dict[str, Any] = {"type": "type", "text": "once"}


@pytest.fixture
async def remote(stage: Stage) -> AsyncIterator[Remote]:
    stage.machine.images["desktop"] = "sha256:" + "2" * 64
    stage.host = replace(stage.host, environments=(*stage.host.environments, "desktop"))
    async with Remote.open(stage) as made:
        yield made


async def begin(remote: Remote) -> RunRow:
    agent = await remote.stage.agent("on-a-screen", kind="remote", surface="desktop")
    run = await remote.stage.submit(await remote.stage.task(), agent)
    await start(remote, run.id)
    await until(lambda: remote.stage.has_event(run.id, "run.ready"))
    await remote.claim(run.id)
    return run


async def start(remote: Remote, run_id: str) -> None:
    await remote.start_worker(run_id, desktops=Desktops(PROGRAM))


async def act(remote: Remote, run: RunRow, *actions: dict[str, Any], status: int = 200, **more: Any) -> Any:
    body = {"actions": list(actions), "settle": None, **more}
    return await remote.call("POST", f"/v1/runs/{run.id}/desktop/actions", status, json=body)


async def test_a_loop_outside_works_on_the_screen_with_the_client(remote: Remote) -> None:
    run = await begin(remote)
    await remote.call("POST", f"/v1/runs/{run.id}/release", 204)
    async with served(remote.app) as url, AsyncClient(url, remote.token) as client:
        async with client.drive(run.id, holder="a client") as box:
            acted = await box.desktop_actions([{"type": "click", "x": 7, "y": 8}, TYPE, {"type": "screenshot"}])
            assert (acted.failed, len(acted.results), acted.state and acted.state["cursor_x"]) == (None, 3, 7)
            assert Image.open(io.BytesIO(acted.image)).size == (1280, 800)
            assert acted.screenshot is not None
            assert await box.picture(acted.screenshot.sha256) == acted.image
            seen = await box.desktop_screenshot()
            assert Image.open(io.BytesIO(seen)).format == "PNG"
            native = await box.desktop_actions(
                vocabulary="openai.computer", payloads=[{"actions": [{"type": "type", "text": " more"}]}], settle=None
            )
            assert native.state is not None
            assert native.state["title"] == "once more"
            failed = await box.desktop_actions([{"type": "key", "keys": ["no_such_key"]}, TYPE])
            assert (failed.failed, len(failed.results)) == ("unknown_key: no_such_key", 1)
            with pytest.raises(Invalid):
                await box.desktop_actions(vocabulary="nobody's", payloads=[{}])
            assert (await box.exec(["sh", "-c", "echo $DISPLAY"])).stdout == ":1\n"
            await box.finish("done")
        assert (await remote.end(run.id)).ended_because is EndedBecause.COMPLETED
        with pytest.raises(Conflict):
            await client.runs.screenshot(run.id)
        assert await client.runs.picture(run.id, acted.screenshot.sha256) == acted.image
        with pytest.raises(NotFound):
            await client.runs.picture(run.id, "0" * 64)
    steps = (await remote.call("GET", f"/v1/runs/{run.id}/trajectory"))["steps"]
    shown = [part for step in steps for r in step.get("observation", {}).get("results", []) for part in r["content"]]
    paths: list[str] = [part["source"]["path"] for part in shown if isinstance(part, dict) and part["type"] == "image"]
    assert acted.screenshot.href in paths
    assert await remote.call("GET", acted.screenshot.href) == acted.image


async def test_the_official_mcp_client_is_shown_the_screen(remote: Remote) -> None:
    run = await begin(remote)
    async with session(remote, run.id) as mcp:
        await mcp.initialize()
        assert {"desktop_actions", "desktop_screenshot"} <= {tool.name for tool in (await mcp.list_tools()).tools}
        acted = await mcp.call_tool("desktop_actions", {"actions": [TYPE], "screenshot": {"format": "png"}})
        seen = await mcp.call_tool("desktop_screenshot", {})
        failed = await mcp.call_tool("desktop_actions", {"actions": [{"type": "key", "keys": ["no_such_key"]}]})
    for result in (acted, seen):
        _, picture = result.content
        assert isinstance(picture, ImageContent)
        assert Image.open(io.BytesIO(base64.b64decode(picture.data))).size == (1280, 800)
    assert isinstance(failed.content[0], TextContent)
    assert "unknown_key" in failed.content[0].text
    calls = [(e.payload["name"], e.payload["id"]) for e in await remote.stage.events(run.id, "tool.call")]
    assert [name for name, _ in calls] == ["desktop_actions", "desktop_screenshot", "desktop_actions"]
    assert [e.payload["id"] for e in await remote.stage.events(run.id, "desktop.action")] == [id for _, id in calls]


async def test_pictures_are_those_before_and_after(remote: Remote) -> None:
    run = await begin(remote)
    for text in ("a", "b"):
        await act(remote, run, {"type": "type", "text": text}, screenshot={"format": "webp"})
    first, second = [e.payload for e in await remote.stage.events(run.id, "desktop.action")]
    assert first["before"]["sha256"] != first["after"]["sha256"] == second["before"]["sha256"]
    assert second["after"]["sha256"] not in (first["before"]["sha256"], first["after"]["sha256"])


@pytest.mark.parametrize(
    ("misdeed", "type"), [("!die", "desktop_lost"), ("!garbage", "bad_answer"), ("!lie", "bad_answer")]
)
async def test_an_action_server_that_fails_is_typed_and_the_next_batch_finds_another(
    remote: Remote, misdeed: str, type: str
) -> None:
    run = await begin(remote)
    await act(remote, run, TYPE)
    problem = await act(remote, run, {"type": "type", "text": misdeed}, status=409, call_id="bad")
    assert problem["type"] == f"urn:workstead:problem:{type}"
    again = await act(remote, run, {"type": "type", "text": misdeed}, status=409, call_id="bad")
    assert again["type"] == problem["type"]
    acted = await act(remote, run)
    assert acted["state"]["title"] == "once"
    lost = [e.payload["error"] for e in await remote.stage.events(run.id, "desktop.action")]
    assert lost == [None, type, None]
    await remote.call("POST", f"/v1/runs/{run.id}/finish", 202, json={})
    assert (await remote.end(run.id)).ended_because is EndedBecause.COMPLETED


async def test_a_batch_whose_worker_is_killed_is_not_done_twice(remote: Remote) -> None:
    run = await begin(remote)
    actions = (TYPE, {"type": "wait", "seconds": 30})
    acting = asyncio.create_task(act(remote, run, *actions, call_id="one"))
    await until(lambda: remote.stage.has_event(run.id, "tool.call"))
    await asyncio.sleep(0.3)  # whether the batch has begun does not matter: either way it is not begun again
    await remote.kill_worker()
    await start(remote, run.id)
    acted = await asyncio.wait_for(acting, 40)
    assert (acted["error"], acted["results"]) == ("interrupted", [])
    assert acted["screenshot"] is not None
    assert acted["state"]["title"] in ("", "once")
    assert (await act(remote, run, *actions, call_id="one"))["error"] == "interrupted"
    assert (await act(remote, run))["state"]["title"] in ("", "once")


async def test_a_batch_outlives_its_caller_and_is_answered_to_the_next(remote: Remote) -> None:
    run = await begin(remote)
    actions = (TYPE, {"type": "wait", "seconds": 1})
    first = asyncio.create_task(act(remote, run, *actions, call_id="one"))
    await until(lambda: remote.stage.has_event(run.id, "tool.call"))
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    acted = await act(remote, run, *actions, call_id="one")
    assert (acted["error"], len(acted["results"])) == (None, 2)
    assert acted["state"]["title"] == "once"


async def test_too_many_waiting_batches_are_told_so(remote: Remote) -> None:
    run = await begin(remote)
    waits = [asyncio.create_task(_status(remote, run, {"type": "wait", "seconds": 0.5})) for _ in range(12)]
    statuses = await asyncio.gather(*waits)
    assert sorted(set(statuses)) == [200, 429]
    assert (await act(remote, run, TYPE))["state"]["title"] == "once"


async def _status(remote: Remote, run: RunRow, *actions: dict[str, Any]) -> int:
    body = {"actions": list(actions), "settle": None, "screenshot": None}
    headers = {"Workstead-Lease": remote.lease}
    return (await remote.http.post(f"/v1/runs/{run.id}/desktop/actions", json=body, headers=headers)).status_code


async def test_a_stop_in_the_middle_of_a_drag_ends_the_run_typed(remote: Remote) -> None:
    run = await begin(remote)
    drag = {"type": "drag", "path": [{"x": 1, "y": 1}, {"x": 9, "y": 9}]}
    down = {"type": "mouse_down", "x": 1, "y": 1}
    acting = asyncio.create_task(act(remote, run, drag, down, {"type": "wait", "seconds": 60}, status=409))
    await until(lambda: remote.stage.has_event(run.id, "tool.call"))
    await remote.stage.stop(run.id, StopMode.COLLECT)
    problem = await asyncio.wait_for(acting, 40)
    assert problem["type"].endswith((":lease_lost", ":desktop_lost"))
    assert (await remote.end(run.id)).ended_because is EndedBecause.STOPPED


async def test_the_command_saves_a_picture_and_never_over_another(remote: Remote, tmp_path: Path) -> None:
    run = await begin(remote)
    target = tmp_path / "now.png"
    async with served(remote.app) as url:
        env = {**os.environ, "WORKSTEAD_URL": url, "WORKSTEAD_TOKEN": remote.token}
        argv = [sys.executable, "-c", "from workstead.cli.app import main; main()"]
        argv += ["runs", "screenshot", run.id, "-o", str(target)]
        codes = [
            (await asyncio.to_thread(subprocess.run, argv, env=env, capture_output=True, timeout=60)).returncode
            for _ in range(2)
        ]
    assert codes == [0, 1]
    assert Image.open(io.BytesIO(target.read_bytes())).size == (1280, 800)
    assert not await remote.stage.events(run.id, "desktop.action")
