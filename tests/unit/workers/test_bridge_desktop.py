"""Batches through a worker's bridge: each is done once per id, and what is kept of them is bounded."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from service.desktop.desktops import Desktops, Opening
from service.domain.agents import Surface
from service.domain.desktop import Size
from service.lifecycle.bridge_frames import Frame
from service.sandboxes.contract import LauncherLost, Sandbox, SandboxSpec, ToolFailed
from service.testing import fake_deskd
from service.testing.memory_sandbox import MemoryBackend, MemoryHost
from service.workers import bridge_desktop
from service.workers.bridge_desktop import DesktopCalls

PROGRAM = (sys.executable, "-I", fake_deskd.__file__)
OPENING = Opening({"PATH": "/usr/bin:/bin"}, Surface.DESKTOP, Size(width=1280, height=800))


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    host = MemoryHost()
    backend = MemoryBackend(host)
    made = await backend.make(SandboxSpec(await backend.resolve_image("base")))
    yield made
    await backend.remove(made.id)
    host.close()


@pytest.fixture
async def calls() -> AsyncIterator[DesktopCalls]:
    desktops = Desktops(PROGRAM)
    made = DesktopCalls(desktops)
    yield made
    await made.close()
    await desktops.close()


def head(id: str, *actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"call": "desktop", "call_id": id, "batch": {"actions": list(actions), "shot": {"format": "png"}}} | more


def typed(text: str) -> dict[str, Any]:
    return {"type": "type", "text": text}


def title(frame: Frame) -> str:
    return frame.head["done"]["state"]["title"]


async def test_the_answer_has_pictures_one_after_the_other(sandbox: Sandbox, calls: DesktopCalls) -> None:
    frame = await calls.act(sandbox, OPENING, head("a", {"type": "screenshot"}, typed("x"), before=True))
    done = frame.head["done"]
    assert [(i["role"], i["format"], i["width"]) for i in done["images"]] == [
        ("before", "png", 1280),
        ("action", "png", 1280),
        ("shot", "png", 1280),
    ]
    assert sum(i["bytes"] for i in done["images"]) == len(frame.body)
    assert (done["error"], done["results"]) == (None, [{"index": 0, "image": 0}, {"index": 1}])


async def test_the_same_id_is_the_same_batch(sandbox: Sandbox, calls: DesktopCalls) -> None:
    """Whoever asks again waits for the batch under way, also when the first that asked has left."""
    asked = head("once", {"type": "wait", "seconds": 0.5}, typed("x"))
    left = asyncio.create_task(calls.act(sandbox, OPENING, asked))
    await asyncio.sleep(0)
    left.cancel()
    both = await asyncio.gather(*(calls.act(sandbox, OPENING, asked) for _ in range(2)))
    assert [title(frame) for frame in both] == ["x", "x"]
    assert title(await calls.act(sandbox, OPENING, asked)) == "x"
    assert title(await calls.act(sandbox, OPENING, head("another", typed("y")))) == "xy"


async def test_what_is_not_kept_any_more_is_not_done_again(
    sandbox: Sandbox, calls: DesktopCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len((await calls.act(sandbox, OPENING, head("0", typed("0")))).body)
    monkeypatch.setattr(bridge_desktop, "MOST_KEPT_BYTES", 3 * size)
    for n in range(1, 5):
        await calls.act(sandbox, OPENING, head(str(n), typed(str(n))))
    for id in ("0", "1"):
        with pytest.raises(ToolFailed) as dropped:
            await calls.act(sandbox, OPENING, head(id, typed(id)))
        assert dropped.value.type == "result_dropped"
    assert title(await calls.act(sandbox, OPENING, head("4", typed("4")))) == "01234"


async def test_a_lost_batch_keeps_its_outcome_and_the_next_one_has_a_new_server(
    sandbox: Sandbox, calls: DesktopCalls
) -> None:
    for _ in range(2):
        lost = (await calls.act(sandbox, OPENING, head("dies", typed("!die")))).head["done"]
        assert (lost["error"], lost["state"]) == ("desktop_lost", None)
    assert title(await calls.act(sandbox, OPENING, head("next", typed("up")))) == "up"


async def test_a_screen_that_does_not_come_up_is_said_and_tried_again(sandbox: Sandbox, calls: DesktopCalls) -> None:
    await sandbox.write_file(fake_deskd.START.name, b"fatal")
    assert (await calls.act(sandbox, OPENING, head("a"))).head["done"]["error"] == "no_x_server"
    await sandbox.write_file(fake_deskd.START.name, b"")
    assert (await calls.act(sandbox, OPENING, head("b"))).head["done"]["error"] is None


async def test_too_many_at_once_are_told_so_and_may_come_again(sandbox: Sandbox, calls: DesktopCalls) -> None:
    first = asyncio.create_task(calls.act(sandbox, OPENING, head("first", {"type": "wait", "seconds": 1})))
    await asyncio.sleep(0.3)
    others = await asyncio.gather(*(calls.act(sandbox, OPENING, head(f"n{n}", typed("x"))) for n in range(12)))
    errors = [frame.head["done"]["error"] for frame in others]
    assert errors.count("busy") == 4
    await first
    again = [await calls.act(sandbox, OPENING, head(f"n{n}", typed("x"))) for n in range(12)]
    assert [frame.head["done"]["error"] for frame in again] == [None] * 12
    assert title(again[-1]) == "x" * 12


async def test_a_sandbox_that_is_gone_is_said_before_anything_is_done(sandbox: Sandbox, calls: DesktopCalls) -> None:
    under_way = asyncio.create_task(calls.act(sandbox, OPENING, head("under way", {"type": "wait", "seconds": 60})))
    await asyncio.sleep(0.5)
    await sandbox.kill()
    assert (await under_way).head["done"]["error"] == "desktop_lost"
    with pytest.raises(LauncherLost):
        await calls.act(sandbox, OPENING, head("after", typed("x")))


@pytest.mark.parametrize("wrong", [{}, {"call_id": "a"}, {"call_id": "a", "batch": {"actions": [{"type": "fly"}]}}])
async def test_a_bad_request_is_refused(sandbox: Sandbox, calls: DesktopCalls, wrong: dict[str, Any]) -> None:
    with pytest.raises((KeyError, ValueError)):
        await calls.act(sandbox, OPENING, wrong)
