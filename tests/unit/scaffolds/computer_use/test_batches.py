"""What a batch asks for, and what the model is told of it."""

from dataclasses import replace
from typing import Any

from service.domain.desktop import ActionResult, ActionType, DesktopAction, DesktopState, Picture, Region, Window
from service.scaffolds.computer_use.batches import INTERRUPTED, RESTLESS, batch_of, seen, told
from service.scaffolds.loops import DesktopOutcome

STATE = DesktopState(width=1280, height=800)
LOOK = DesktopAction(type=ActionType.SCREENSHOT)
CLICK = DesktopAction(type=ActionType.CLICK, x=1, y=1)
ZOOM = DesktopAction(type=ActionType.ZOOM, region=Region(x0=0, y0=0, x1=9, y1=9))


def picture(digit: str) -> Picture:
    return Picture(sha256=digit * 64, format="webp", width=1280, height=800, size_bytes=1)


def outcome(**fields: Any) -> DesktopOutcome:
    return replace(DesktopOutcome(state=STATE), **fields)


def test_what_only_looks_is_not_waited_for() -> None:
    assert batch_of([LOOK], None).settle is None
    settle = batch_of([CLICK, LOOK], None).settle
    assert settle is not None
    assert settle.quiet_s == 0.6


def test_who_looks_closer_is_shown_that_alone() -> None:
    close = batch_of([ZOOM], None)
    assert close.shot is None
    assert batch_of([CLICK, ZOOM], None).shot is not None
    results = [ActionResult(index=0, image=0)]
    assert seen(close, outcome(results=results, images=[picture("a")])) == [picture("a")]


def test_a_screenshot_at_the_end_is_the_picture_after_it() -> None:
    batch = batch_of([LOOK, CLICK, LOOK], None)
    results = [ActionResult(index=0, image=0), ActionResult(index=1), ActionResult(index=2, image=1)]
    images = [picture("a"), picture("b")]
    assert seen(batch, outcome(results=results, images=images, picture=picture("c"))) == [picture("a"), picture("c")]
    assert seen(batch, outcome(results=results, images=images)) == images


def test_the_first_failure_is_told_with_its_place() -> None:
    results = [ActionResult(index=0), ActionResult(index=1, error="out_of_bounds", detail="x=5000")]
    text, is_error = told(batch_of([CLICK, CLICK, LOOK], None), outcome(results=results))
    assert (text, is_error) == ("Action 2 (click) failed: out_of_bounds x=5000; what comes after it was not done", True)
    text, _ = told(batch_of([CLICK], None), outcome(results=[ActionResult(index=0, error="busy")]))
    assert text == "click failed: busy"


def test_an_index_that_the_desktop_invents_harms_nothing() -> None:
    text, is_error = told(batch_of([CLICK], None), outcome(results=[ActionResult(index=99, error="x")]))
    assert (text.startswith("action failed"), is_error) == (True, True)


def test_words_windows_and_unrest() -> None:
    asks = batch_of([DesktopAction(type=ActionType.WINDOWS), DesktopAction(type=ActionType.CURSOR_POSITION)], None)
    state = STATE.model_copy(
        update={"windows": [Window(title="Budget", program="soffice", active=True)], "settled": False}
    )
    text, is_error = told(asks, outcome(state=state, results=[ActionResult(index=1, text="3,4")]))
    assert (text.splitlines(), is_error) == (["3,4", "* Budget (soffice)", RESTLESS], False)
    assert told(batch_of([CLICK], None), outcome()) == ("", False)


def test_what_was_interrupted_is_no_success() -> None:
    text, is_error = told(batch_of([CLICK], None), outcome(interrupted=True))
    assert (text, is_error) == (INTERRUPTED, True)


def test_texts_are_bounded() -> None:
    text, _ = told(batch_of([CLICK], None), outcome(results=[ActionResult(index=0, text="x" * 1_000_000)]))
    assert len(text) == 20_000
