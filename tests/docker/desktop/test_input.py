"""What a window is told when deskd clicks, drags, scrolls and presses."""

import asyncio
import time
from itertools import pairwise

import pytest

from service.sandboxes.contract import Sandbox
from tests.docker.desktop.conftest import Events
from tests.docker.desktop.driver import Deskd, do

pytestmark = pytest.mark.asyncio(loop_scope="session")
SHIFT, CONTROL, BUTTON1 = 1, 4, 256


async def test_clicks_of_every_kind(deskd: Deskd, probed: Events) -> None:
    await deskd.done(
        do("click", x=200, y=200),
        do("click", x=200, y=200, button="right"),
        do("click", x=300, y=200, count=3, modifiers=["ctrl"]),
        do("click", button="middle"),
        do("click", button="back"),
    )
    downs = [event for event in await probed() if event["kind"] == "down"]
    assert [(event["button"], event["x"], event["y"]) for event in downs] == [
        (1, 200, 200),
        (3, 200, 200),
        *[(1, 300, 200)] * 3,
        (2, 300, 200),
        (8, 300, 200),
    ]
    assert [event["state"] & CONTROL for event in downs] == [0, 0, 4, 4, 4, 0, 0]
    triple = [event["at"] for event in downs[2:5]]
    assert triple[-1] - triple[0] < 400, "too slow for a triple click"


async def test_equal_clicks_of_a_batch_are_no_double_click(deskd: Deskd, probed: Events) -> None:
    near, far = do("click", x=205, y=203), do("click", x=400, y=300)
    began = time.monotonic()
    await deskd.done(do("click", x=200, y=200), near, far, do("click", x=400, y=300, button="right"))
    took = time.monotonic() - began
    times = [event["at"] for event in await probed() if event["kind"] == "down"]
    assert times[1] - times[0] >= 500
    assert times[3] - times[1] < 500 * 2, "clicks elsewhere, or of another button, need not wait"
    assert took < 3


async def test_a_drag_goes_through_points_and_lets_go(deskd: Deskd, probed: Events) -> None:
    await deskd.done(do("drag", path=[{"x": 200, "y": 200}, {"x": 400, "y": 260}, {"x": 300, "y": 300}]))
    events = await probed()
    dragged = [event for event in events if event["kind"] == "move" and event["state"] & BUTTON1]
    assert len(dragged) >= 12
    assert (400, 260) in [(event["x"], event["y"]) for event in dragged]
    assert all(abs(b["x"] - a["x"]) <= 40 for a, b in pairwise(dragged))
    last = [event for event in events if event["kind"] == "up"][-1]
    assert (last["x"], last["y"], last["button"]) == (300, 300, 1)


async def test_a_drag_of_one_point_begins_at_the_pointer(deskd: Deskd, probed: Events) -> None:
    await deskd.done(do("move", x=200, y=200), do("drag", path=[{"x": 260, "y": 220}], modifiers=["shift"]))
    events = await probed()
    down = next(event for event in events if event["kind"] == "down")
    assert (down["x"], down["y"], down["state"] & SHIFT) == (200, 200, 1)
    assert await deskd.text(do("cursor_position")) == "260,220"


async def test_the_wheel(deskd: Deskd, probed: Events) -> None:
    await deskd.done(do("scroll", x=300, y=300, dy=3), do("scroll", dx=2, dy=-1))
    assert [event["button"] for event in await probed() if event["kind"] == "down"] == [5, 5, 5, 4, 7, 7]


async def test_keys(deskd: Deskd, probed: Events) -> None:
    await deskd.done(do("click", x=400, y=300))
    await probed()
    await deskd.done(
        do("key", keys=["ctrl", "SHIFT", "home"]), do("key", keys=["ENTER"], repeat=2), do("key", keys=["ctrl", "+"])
    )
    pressed = [(event["key"], event["state"] & 5) for event in await probed() if event["kind"] == "key"]
    control, shift, home, enter, equal = 0xFFE3, 0xFFE1, 0xFF50, 0xFF0D, ord("=")
    assert pressed == [
        *[(control, 0), (shift, CONTROL), (home, CONTROL | SHIFT)],
        *[(enter, 0), (enter, 0)],
        *[(control, 0), (shift, CONTROL), (equal, CONTROL | SHIFT)],
    ]


async def test_a_key_that_is_held_repeats(deskd: Deskd, probed: Events) -> None:
    await deskd.done(do("click", x=400, y=300), do("hold_key", keys=["a"], seconds=1.2))
    assert len([event for event in await probed() if event["kind"] == "key"]) > 3


async def test_what_is_held_on_purpose_is_said_and_let_go(deskd: Deskd, probed: Events) -> None:
    held = await deskd.done(
        do("key_down", keys=["ctrl"]), do("mouse_down", x=200, y=200), do("key", keys=["ctrl", "a"])
    )
    assert held["state"]["held"] == ["ctrl", "left"]
    assert (await deskd.done(do("move", x=210, y=200)))["state"]["held"] == ["ctrl", "left"]
    assert (await deskd.done(do("key_up", keys=["ctrl"]), do("mouse_up")))["state"]["held"] == []
    await deskd.done(do("key_down", keys=["shift", "x"]), do("mouse_down", button="right"))
    assert (await deskd.done(do("release_all")))["state"]["held"] == []
    ups = [event.get("button", event.get("key")) for event in await probed() if event["kind"] in ("up", "key_up")]
    assert {0xFFE1, ord("x"), 3} <= set(ups)


@pytest.mark.parametrize(
    ("running", "seconds"),
    [
        (do("drag", path=[{"x": 150 + n % 2 * 300, "y": 150 + n} for n in range(250)]), 0.4),
        (do("type", text="abcdefgh" * 8000), 0.3),
        (do("wait", seconds=60), 0.2),
        (do("hold_key", keys=["shift", "q"], seconds=60), 0.3),
    ],
    ids=["drag", "type", "wait", "hold"],
)
async def test_an_abort_stops_and_lets_go(
    deskd: Deskd, probed: Events, running: dict[str, object], seconds: float
) -> None:
    await deskd.done(do("key_down", keys=["ctrl"]))
    number = await deskd.say("perform", actions=[do("cursor_position"), running, do("wait", seconds=5)])
    await asyncio.sleep(seconds)
    began = time.monotonic()
    abort = await deskd.say("abort")
    answers = {head["id"]: head for head, _ in (await deskd.answer(), await deskd.answer())}
    assert time.monotonic() - began < 2
    assert answers[abort]["ok"] is True
    assert [result.get("error") for result in answers[number]["results"]] == [None, "aborted"]
    assert answers[number]["state"]["held"] == []
    await until_nothing_is_down(probed)


async def until_nothing_is_down(probed: Events) -> None:
    """A window that was told much writes it down for a while."""
    down: dict[int, bool] = {}
    async with asyncio.timeout(30):
        while not down or any(down.values()):
            for event in await probed():
                if event["kind"] in ("key", "key_up", "down", "up"):
                    down[event["key"] if "key" in event else event["button"]] = event["kind"] in ("key", "down")


async def test_requests_are_answered_while_a_batch_runs(deskd: Deskd) -> None:
    running = await deskd.say("perform", actions=[do("wait", seconds=30)])
    ping, second = await deskd.say("ping"), await deskd.say("perform", actions=[])
    assert (await deskd.answer())[0] == {"id": ping, "ok": True}
    assert (await deskd.answer())[0]["error"]["type"] == "busy"
    await deskd.say("abort")
    assert running in [(await deskd.answer())[0]["id"], (await deskd.answer())[0]["id"]]
    assert second > running


@pytest.mark.parametrize("probed", ["grab", "server"], indirect=True)
async def test_a_program_that_grabs_the_input_gets_it_and_blocks_nothing(deskd: Deskd, probed: Events) -> None:
    began = time.monotonic()
    head, body = await deskd.perform(
        do("click", x=900, y=600),
        do("type", text="hé"),
        do("screenshot"),
        settle={"quiet_s": 0.2, "cap_s": 3},
        shot={"format": "jpeg"},
    )
    assert [result.get("error") for result in head["results"]] == [None] * 3
    assert len(head["images"]) == 2
    assert body
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("probed", ["confine"], indirect=True)
async def test_a_pointer_that_is_kept_elsewhere_clicks_nothing(deskd: Deskd, probed: Events) -> None:
    assert await deskd.refused(do("click", x=900, y=600)) == "input_blocked"
    assert [event for event in await probed() if event["kind"] == "down"] == []


async def test_errors_end_a_batch_and_say_why(deskd: Deskd, sandbox: Sandbox) -> None:
    wrong = [
        (do("click", x=1280, y=10), "out_of_bounds"),
        (do("drag", path=[{"x": 1, "y": 1}, {"x": 1, "y": 800}]), "out_of_bounds"),
        (do("key", keys=["ctrl", "NoSuchKey"]), "unknown_key"),
        (do("type", text="a\x07"), "bad_action"),
        (do("click", x=1, y="2"), "bad_action"),
        (do("wait", seconds=1e9), "bad_action"),
        (do("dance"), "bad_action"),
        (do("zoom", region={"x0": 0, "y0": 0, "x1": 100_000, "y1": 100_000}), "bad_action"),
        (do("zoom", region={"x0": 0, "y0": 0, "x1": 1281, "y1": 10}), "out_of_bounds"),
        (do("resize", size={"width": 100, "height": 100}), "out_of_bounds"),
    ]
    for action, word in wrong:
        head, _ = await deskd.perform(do("cursor_position"), action, do("cursor_position"))
        assert [result.get("error") for result in head["results"]] == [None, word], action
        assert head["results"][1]["detail"]
        assert head["state"]["held"] == [], action
