"""What of a viewer's bytes reaches a screen: pictures are asked for by everybody, input passes for who holds the desktop."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.desktop.rfb import MAX_CUT_TEXT, RfbFilter, RfbViolation
from service.desktop.rfb_input import MOST_RECORDS, MOST_TEXT

HELLO = b"RFB 003.008\n\x01\x00"
HELLO_PASSED = b"RFB 003.008\n\x01\x01"
"""Nobody asks to be alone on the screen."""


def key(sym: int, down: bool = True) -> bytes:
    return struct.pack(">BBHI", 4, down, 0, sym)


def pointer(x: int, y: int, buttons: int = 0) -> bytes:
    return struct.pack(">BBHH", 5, buttons, x, y)


def cut_text(data: bytes, size: int | None = None) -> bytes:
    return struct.pack(">BBHi", 6, 0, 0, len(data) if size is None else size) + data


def encodings(*kinds: int) -> bytes:
    return struct.pack(f">BBH{len(kinds)}i", 2, 0, len(kinds), *kinds)


PIXELS = b"\x00" + bytes(19)
UPDATE = struct.pack(">BBHHHH", 3, 1, 0, 0, 1280, 800)
CONTINUOUS = struct.pack(">BBHHHH", 150, 1, 0, 0, 1280, 800)
FENCE = struct.pack(">BBHIB", 248, 0, 0, 1, 3) + b"abc"
ASKING = [PIXELS, encodings(7, 16, -239), UPDATE, CONTINUOUS, FENCE]
EXTENDED_KEY = struct.pack(">BBHII", 255, 0, 1, 0x61, 30)
ACTING = [key(0x61), pointer(3, 4, 1), cut_text(b"hi"), cut_text(b"\x01\x00\x00\x00", -4), EXTENDED_KEY]
NOBODY = [b"\xfa\x00\x01\x02", struct.pack(">BBHHBB", 251, 0, 640, 480, 1, 0) + bytes(16)]
"""Power and size of the screen."""


def fed(control: bool, *messages: bytes) -> tuple[RfbFilter, bytes]:
    made = RfbFilter(control)
    return made, made.feed(HELLO + b"".join(messages))[len(HELLO_PASSED) :]


def test_a_viewer_asks_and_does_nothing() -> None:
    made, passed = fed(False, *ASKING, *ACTING, *NOBODY, UPDATE)
    assert passed == b"".join([*ASKING, UPDATE])
    assert made.dropped == {"key": 1, "pointer": 1, "cut_text": 2, "extended_key": 1, "xvp": 1, "desktop_size": 1}
    assert made.inputs.take() is None


def test_who_holds_the_desktop_types_points_and_pastes() -> None:
    made, passed = fed(True, *ASKING, *ACTING, *NOBODY)
    assert passed == b"".join([*ASKING, *ACTING])
    assert made.dropped == {"xvp": 1, "desktop_size": 1}
    assert made.inputs.take() == {
        "left_out": 0,
        "records": [
            {"key": 0x61, "down": True},
            {"x": 3, "y": 4, "buttons": 1},
            {"text": "hi", "characters": 2},
            {"clipboard_bytes": 4},
            {"key": 0x61, "down": True},
        ],
    }
    assert made.inputs.take() is None


@pytest.mark.parametrize(
    ("start", "passed"),
    [
        (b"RFB 003.003\n\x00", b"RFB 003.003\n\x01"),
        (b"RFB 003.007\n\x01\x00", b"RFB 003.007\n\x01\x01"),
        (HELLO, HELLO_PASSED),
    ],
)
def test_the_screen_is_shared_in_every_version(start: bytes, passed: bytes) -> None:
    assert RfbFilter(True).feed(start + UPDATE) == passed + UPDATE


def test_what_would_change_the_length_of_later_messages_is_not_negotiated() -> None:
    _, passed = fed(True, encodings(7, -316, -239, -259, -309, 16))
    assert passed == encodings(7, -239, 16)


@pytest.mark.parametrize(
    ("sent", "type"),
    [
        (b"GET / HTTP/1.1\r\n", "unknown_version"),
        (b"RFB 003.889\n", "unknown_version"),
        (b"RFB 003.008\n\x02", "unknown_security"),
        (HELLO + b"\x01", "unknown_message"),
        (HELLO + b"\xff\x01\x00\x00", "unknown_message"),
        (HELLO + cut_text(b"", MAX_CUT_TEXT + 1), "cut_text_too_large"),
        (HELLO + cut_text(b"", -(2**31)), "cut_text_too_large"),
        (HELLO + struct.pack(">BBH", 2, 0, 0xFFFF), "too_many_encodings"),
        (HELLO + struct.pack(">BBHIB", 248, 0, 0, 1, 65), "fence_too_large"),
    ],
)
@pytest.mark.parametrize("control", [True, False])
def test_what_is_no_message_ends_it(sent: bytes, type: str, control: bool) -> None:
    made = RfbFilter(control)
    with pytest.raises(RfbViolation) as found:
        made.feed(sent)
    assert found.value.type == type
    with pytest.raises(RfbViolation):
        made.feed(UPDATE)


def test_movements_are_kept_as_their_last_point_and_clicks_as_they_are() -> None:
    points = [pointer(x, 5) for x in range(100)]
    made, _ = fed(True, *points, pointer(99, 5, 1), pointer(120, 5, 1), pointer(120, 5, 0))
    payload = made.inputs.take()
    assert payload is not None
    seen = [(r["x"], r["buttons"]) for r in payload["records"]]
    assert seen == [(99, 0), (120, 1), (120, 0)]


def test_a_batch_of_input_is_bounded() -> None:
    made, _ = fed(True, *[key(0x61, n % 2 == 0) for n in range(MOST_RECORDS + 7)])
    payload = made.inputs.take()
    assert payload is not None
    assert (len(payload["records"]), payload["left_out"]) == (MOST_RECORDS, 7)
    made.feed(cut_text(b"x" * MAX_CUT_TEXT))
    assert made.inputs.take() == {
        "records": [{"text": "x" * MOST_TEXT, "characters": MAX_CUT_TEXT}],
        "left_out": 0,
    }


messages = st.lists(st.sampled_from([*ASKING, *ACTING, *NOBODY]), max_size=12)


@given(messages, st.booleans(), st.lists(st.integers(1, 40), max_size=60))
def test_how_bytes_are_cut_changes_nothing(sent: list[bytes], control: bool, cuts: list[int]) -> None:
    whole = HELLO + b"".join(sent)
    at_once, in_pieces = RfbFilter(control), RfbFilter(control)
    expected, passed, at = at_once.feed(whole), b"", 0
    for cut in cuts:
        passed += in_pieces.feed(whole[at : at + cut])
        at += cut
    passed += in_pieces.feed(whole[at:])
    assert passed == expected
    assert in_pieces.dropped == at_once.dropped
    assert in_pieces.inputs.take() == at_once.inputs.take()


@given(st.binary(max_size=300))
def test_a_viewer_never_gets_input_through_whatever_it_sends(data: bytes) -> None:
    made = RfbFilter(False)
    passed = made.feed(HELLO)
    try:
        passed += made.feed(data)
    except RfbViolation:
        return
    again: Any = RfbFilter(True)
    again.feed(passed)
    assert again.inputs.take() is None
