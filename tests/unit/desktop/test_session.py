"""A session with a stand-in for deskd, in a memory sandbox: what goes wrong inside ends the session, never the caller."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from service.desktop import session as sessions
from service.desktop.desktops import Desktops, Opening
from service.desktop.pace import seconds_of
from service.desktop.session import MOST_WAITING, DesktopLost, DesktopSession
from service.domain.agents import Surface
from service.domain.desktop import Batch, DesktopAction, Settle, Shot, Size
from service.sandboxes.contract import LauncherLost, Sandbox, SandboxSpec
from service.testing import fake_deskd
from service.testing.memory_sandbox import MemoryBackend, MemoryHost

PROGRAM = (sys.executable, "-I", fake_deskd.__file__)
OPENING = Opening({"PATH": "/usr/bin:/bin"}, Surface.DESKTOP, Size(width=1280, height=800))
SHOT = Shot()
LOOK = Batch(shot=SHOT)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    host = MemoryHost()
    backend = MemoryBackend(host)
    made = await backend.make(SandboxSpec(await backend.resolve_image("base")))
    yield made
    await backend.remove(made.id)
    host.close()


@pytest.fixture
async def desktops() -> AsyncIterator[Desktops]:
    made = Desktops(PROGRAM)
    yield made
    await made.close()


def batch(*actions: dict[str, Any], shot: Shot | None = SHOT, settle: Settle | None = None) -> Batch:
    return Batch(actions=[DesktopAction.model_validate(a) for a in actions], shot=shot, settle=settle)


def typed(text: str) -> dict[str, Any]:
    return {"type": "type", "text": text}


async def test_a_batch_is_done_and_seen(sandbox: Sandbox, desktops: Desktops) -> None:
    session = await desktops.of(sandbox, OPENING)
    assert session.size == Size(width=1280, height=800)
    region = {"x0": 0, "y0": 0, "x1": 9, "y1": 9}
    zoom = {"type": "zoom", "region": region, "size": {"width": 90, "height": 60}}
    asked = batch({"type": "click", "x": 7, "y": 8}, zoom, typed("hello"), settle=Settle())
    done = await session.perform(asked, before=True)
    assert done.error is None
    assert done.state is not None
    assert (done.state.cursor_x, done.state.cursor_y, done.state.title, done.state.settled) == (7, 8, "hello", True)
    assert [(r.index, r.error, r.image) for r in done.results] == [(0, None, None), (1, None, 0), (2, None, None)]
    assert [(i.width, i.height) for i in done.images] == [(90, 60)]
    assert done.before is not None
    assert done.shot is not None
    assert done.before.data != done.shot.data
    again = await session.perform(LOOK)
    assert again.shot == done.shot
    assert again.before is None


async def test_the_first_error_ends_a_batch_and_not_the_session(sandbox: Sandbox, desktops: Desktops) -> None:
    session = await desktops.of(sandbox, OPENING)
    done = await session.perform(batch(typed("a"), {"type": "move", "x": 4000, "y": 1}, typed("b")))
    assert [r.error for r in done.results] == [None, "out_of_bounds"]
    assert (await session.perform(batch({"type": "resize", "size": {"width": 640, "height": 480}}))).error is None
    assert session.size == Size(width=640, height=480)
    assert (await session.perform(batch(typed("!fault")))).error == "internal"
    assert await desktops.of(sandbox, OPENING) is session


MISDEEDS = {
    "!die": "desktop_lost",
    "!garbage": "bad_answer",
    "!nojson": "bad_answer",
    "!giant": "bad_answer",
    "!imposter": "bad_answer",
    "!lie": "bad_answer",
}


@pytest.mark.parametrize("misdeed", MISDEEDS)
async def test_whoever_breaks_the_rules_is_closed_and_another_is_opened(
    sandbox: Sandbox, desktops: Desktops, misdeed: str
) -> None:
    session = await desktops.of(sandbox, OPENING)
    await session.perform(batch(typed("kept")))
    done = await session.perform(batch(typed("lost"), typed(misdeed)))
    assert done.error == MISDEEDS[misdeed]
    assert done.state is None
    assert (await session.perform(LOOK)).error == MISDEEDS[misdeed]
    again = await desktops.of(sandbox, OPENING)
    assert again is not session
    seen = await again.perform(LOOK)
    assert seen.state is not None
    assert seen.state.title == "kept"  # the screen outlives its server; what was lost is not repeated


async def test_whoever_speaks_unasked_is_closed_at_its_first_byte(sandbox: Sandbox, desktops: Desktops) -> None:
    session = await desktops.of(sandbox, OPENING)
    assert (await session.perform(batch(typed("!chatter")))).error == "internal"
    async with asyncio.timeout(20):
        while session.lost is None:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
    assert session.lost.type == "bad_answer"
    assert (await session.perform(LOOK)).error == "bad_answer"


async def test_a_batch_over_its_time_ends_the_session(
    sandbox: Sandbox, desktops: Desktops, monkeypatch: pytest.MonkeyPatch
) -> None:
    def soon(_: Batch) -> float:
        return 0.5

    monkeypatch.setattr(sessions, "seconds_of", soon)
    session = await desktops.of(sandbox, OPENING)
    assert (await session.perform(batch(typed("!hang")))).error == "timed_out"
    assert (await session.perform(LOOK)).error == "timed_out"


async def test_batches_wait_for_each_other_and_not_too_many_do(sandbox: Sandbox, desktops: Desktops) -> None:
    session = await desktops.of(sandbox, OPENING)
    first = asyncio.create_task(session.perform(batch({"type": "wait", "seconds": 1})))
    await asyncio.sleep(0)
    others = [asyncio.create_task(session.perform(batch(typed(str(n))))) for n in range(MOST_WAITING)]
    await asyncio.sleep(0)
    assert (await session.perform(LOOK)).error == "busy"
    done = await asyncio.gather(first, *others)
    assert [d.error for d in done] == [None] * (MOST_WAITING + 1)
    assert (await session.perform(LOOK)).error is None
    titles = [d.state.title for d in done if d.state is not None]
    assert titles[-1] == "".join(str(n) for n in range(MOST_WAITING))


async def test_a_caller_that_leaves_stops_its_batch(sandbox: Sandbox, desktops: Desktops) -> None:
    """In the middle of a drag: everything held is let go, and the next batch finds the session as it was."""
    session = await desktops.of(sandbox, OPENING)
    await session.perform(batch({"type": "mouse_down", "x": 1, "y": 1}))
    leaving = asyncio.create_task(session.perform(batch({"type": "wait", "seconds": 60}, typed("never"))))
    waiting = asyncio.create_task(session.perform(LOOK))
    await asyncio.sleep(0.3)
    began = time.monotonic()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    seen = await waiting
    assert time.monotonic() - began < 5
    assert seen.state is not None
    assert (seen.state.held, seen.state.title) == ([], "")
    assert session.lost is None


async def test_a_batch_that_does_not_stop_costs_the_session(
    sandbox: Sandbox, desktops: Desktops, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "ABORT_S", 0.3)
    session = await desktops.of(sandbox, OPENING)
    leaving = asyncio.create_task(session.perform(batch(typed("!hang"))))
    await asyncio.sleep(0.3)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert session.lost is not None
    assert (await (await desktops.of(sandbox, OPENING)).perform(LOOK)).error is None


async def test_a_screen_that_does_not_come_up_is_said(
    sandbox: Sandbox, desktops: Desktops, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sandbox.write_file(fake_deskd.START.name, b"fatal")
    with pytest.raises(DesktopLost) as fatal:
        await desktops.of(sandbox, OPENING)
    assert fatal.value.type == "no_x_server"
    await sandbox.write_file(fake_deskd.START.name, b"silent")
    monkeypatch.setattr(sessions, "HELLO_S", 0.5)
    with pytest.raises(DesktopLost) as silent:
        await desktops.of(sandbox, OPENING)
    assert silent.value.type == "timed_out"
    await sandbox.write_file(fake_deskd.START.name, b"")
    monkeypatch.undo()
    assert (await (await desktops.of(sandbox, OPENING)).perform(LOOK)).error is None


async def test_an_image_without_deskd_is_told_from_one_that_fails(sandbox: Sandbox) -> None:
    for program, type in (
        ((sys.executable, "-I", "/no/such/deskd"), "no_desktop_in_image"),
        ((sys.executable, "-c", "import sys; sys.exit(3)", fake_deskd.__file__), "desktop_lost"),
        (("/no/such/python", fake_deskd.__file__), "desktop_lost"),
    ):
        with pytest.raises(DesktopLost) as lost:
            await DesktopSession.open(
                sandbox, env=OPENING.env, surface=OPENING.surface, size=OPENING.size, program=program
            )
        assert lost.value.type == type


async def test_a_sandbox_that_ends_is_the_callers_to_know(sandbox: Sandbox, desktops: Desktops) -> None:
    session = await desktops.of(sandbox, OPENING)
    under_way = asyncio.create_task(session.perform(batch({"type": "wait", "seconds": 60})))
    await asyncio.sleep(0.3)
    await sandbox.kill()
    with pytest.raises(LauncherLost):
        await under_way
    with pytest.raises(LauncherLost):
        await session.perform(LOOK)
    with pytest.raises(LauncherLost):
        await desktops.of(sandbox, OPENING)


async def test_callers_at_once_share_one_session_and_a_dropped_one_is_closed(sandbox: Sandbox) -> None:
    desktops = Desktops(PROGRAM)
    one, two = await asyncio.gather(desktops.of(sandbox, OPENING), desktops.of(sandbox, OPENING))
    assert one is two
    desktops.drop(sandbox.id)
    await desktops.close()
    assert (await one.perform(LOOK)).error == "desktop_lost"
    goodbye = None
    async with asyncio.timeout(20):
        while goodbye is None:  # deskd heard that its input ended, and let go of everything
            found = {entry.name for entry in (await sandbox.list_files()).entries}
            goodbye = "fake-deskd-goodbye" if "fake-deskd-goodbye" in found else None
            await asyncio.sleep(0.05)


def test_a_batch_may_take_what_it_asks_for() -> None:
    assert seconds_of(Batch()) == 20
    assert seconds_of(batch({"type": "wait", "seconds": 100}, settle=Settle(cap_s=60))) >= 180
    assert seconds_of(batch(typed("漢" * 10_000))) >= 120
    assert seconds_of(batch(*[{"type": "click", "x": 1, "y": 1}] * 64)) >= 52
    assert seconds_of(batch({"type": "key", "keys": ["a"], "repeat": 100})) >= 24
