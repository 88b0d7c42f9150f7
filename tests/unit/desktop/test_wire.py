"""What deskd may say, and that nothing else is believed."""

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.desktop.pictures import NotAPicture, size_of
from service.desktop.wire import (
    MAX_BODY,
    MAX_HEAD,
    MAX_REQUEST,
    BadAnswer,
    Inbox,
    TooLarge,
    encode,
    perform_request,
    read_fault,
    read_hello,
    read_performed,
)
from service.domain.desktop import Batch, DesktopAction, Raw, Settle, Shot
from service.testing.fake_deskd import ENCODERS, SIZES, jpeg, png, webp

CLICK = DesktopAction.model_validate({"type": "click", "x": 1, "y": 2})
LOOK = DesktopAction.model_validate({"type": "screenshot"})
STATE = {"width": 1280, "height": 800}


def frame(head: dict[str, Any], body: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return SIZES.pack(len(text), len(body)) + text + body


def image(role: str, data: bytes, width: int, height: int, format: str = "png", **other: Any) -> dict[str, Any]:
    return {"role": role, "format": format, "width": width, "height": height, "bytes": len(data), **other}


def opened() -> Inbox:
    inbox = Inbox()
    inbox.max_head, inbox.max_body = MAX_HEAD, MAX_BODY
    return inbox


# -- frames --------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=50)), max_size=5), st.data())
def test_any_split_gives_the_same_frames(said: list[tuple[int, bytes]], data: st.DataObject) -> None:
    stream = b"".join(frame({"id": number}, body) for number, body in said)
    inbox, at = opened(), 0
    found: list[tuple[dict[str, Any], bytes]] = []
    while at < len(stream):
        size = data.draw(st.integers(1, len(stream) - at))
        found += list(inbox.feed(stream[at : at + size]))
        at += size
    assert found == [({"id": number}, body) for number, body in said]


@pytest.mark.parametrize(
    "said",
    [
        struct.pack(">II", MAX_HEAD + 1, 0),
        struct.pack(">II", 2, MAX_BODY + 1),
        struct.pack(">II", (1 << 32) - 1, (1 << 32) - 1),
        frame({})[:-1] + b"]",
        SIZES.pack(2, 0) + b"[]",
        SIZES.pack(4, 0) + b"null",
        SIZES.pack(11, 0) + b'{"id": NaN}',
        SIZES.pack(2, 0) + b"\xff\xfe",
        SIZES.pack(200_000, 0) + b"[" * 200_000,
        SIZES.pack(6010, 0) + b'{"id":1' + b"0" * 6002 + b"}",
    ],
)
def test_a_frame_that_breaks_a_rule_is_refused_before_it_is_buffered(said: bytes) -> None:
    with pytest.raises(BadAnswer):
        list(opened().feed(said))


def test_before_the_hello_only_a_little_is_listened_to() -> None:
    with pytest.raises(BadAnswer):
        list(Inbox().feed(struct.pack(">II", 5000, 0)))
    with pytest.raises(BadAnswer):
        list(Inbox().feed(struct.pack(">II", 20, 1)))


@pytest.mark.parametrize(
    "hello",
    [
        {},
        {"hello": 1},
        {"hello": {"protocol": 2, "width": 1, "height": 1}},
        {"hello": {"protocol": 1, "width": 0, "height": 1}},
        {"hello": {"protocol": 1, "width": 4097, "height": 1}},
        {"hello": {"protocol": 1, "width": True, "height": 1}},
        {"hello": {"protocol": 1, "width": "5", "height": 1}},
    ],
)
def test_a_wrong_hello_is_refused(hello: dict[str, Any]) -> None:
    assert read_hello({"hello": {"protocol": 1, "width": 4096, "height": 1}}) == (4096, 1)
    with pytest.raises(BadAnswer):
        read_hello(hello)


def test_a_failures_words_are_cut_and_plain() -> None:
    assert read_fault(None) is None
    assert read_fault({"type": "x_server_gone", "detail": "a\0" + "b" * 900}) == (
        "x_server_gone",
        "a\ufffd" + "b" * 498,
    )
    assert read_fault({"type": "Not a slug\n", "detail": 5}) == ("failed", "")
    with pytest.raises(BadAnswer):
        read_fault("broken")


# -- requests ------------------------------------------------------------------------------------------------------


def test_a_request_says_what_is_to_be_done_and_nothing_about_the_model() -> None:
    action = CLICK.model_copy(update={"raw": Raw(vocabulary="v", payload={"secret": 1}), "intent": "why"})
    asked = perform_request(3, Batch(actions=[action], settle=Settle(), shot=Shot()), before=True)
    assert asked == {
        "id": 3,
        "do": "perform",
        "actions": [{"type": "click", "x": 1, "y": 2}],
        "settle": {"quiet_s": 0.4, "cap_s": 8.0},
        "shot": {"format": "png", "quality": 75, "size": None, "cursor": True},
        "before": True,
    }
    sizes = SIZES.unpack_from(encode(asked))
    assert sizes == (len(encode(asked)) - SIZES.size, 0)


def test_a_request_over_the_bound_is_not_sent() -> None:
    text = DesktopAction.model_validate({"type": "clipboard_write", "text": "x" * (1 << 20)})
    with pytest.raises(TooLarge):
        encode(perform_request(1, Batch(actions=[text] * 9), before=False))
    assert len(encode(perform_request(1, Batch(actions=[text] * 7), before=False))) < MAX_REQUEST


# -- answers -------------------------------------------------------------------------------------------------------


def test_an_answer_with_every_picture() -> None:
    first, zoom, last = png(8, 4, 1), jpeg(30, 20, 2), webp(8, 4, 3)
    pictures = [
        image("before", first, 8, 4),
        image("action", zoom, 30, 20, "jpeg"),
        image("shot", last, 8, 4, "webp"),
    ]
    results = [{"index": 0, "image": 0}, {"index": 1, "error": "out_of_bounds", "detail": "x"}]
    head = {"id": 1, "state": STATE | {"settled": True}, "results": results, "images": pictures}
    done = read_performed(head, first + zoom + last, Batch(actions=[LOOK, CLICK], shot=Shot()), before=True)
    assert done.before is not None
    assert done.shot is not None
    assert (done.before.data, [i.data for i in done.images], done.shot.data) == (first, [zoom], last)
    assert [r.error for r in done.results] == [None, "out_of_bounds"]
    assert done.state is not None
    assert done.state.settled


def _answer(**changes: Any) -> tuple[dict[str, Any], bytes]:
    data = png(8, 4, 1)
    head = {"id": 1, "state": STATE, "results": [{"index": 0}], "images": [image("shot", data, 8, 4)]}
    return head | changes, data


LIES: dict[str, tuple[dict[str, Any], bytes]] = {
    "no state": _answer(state=None),
    "a state without a size": _answer(state={}),
    "a screen too wide": _answer(state={"width": 100_000, "height": 5}),
    "a screen of no height": _answer(state={"width": 5, "height": 0}),
    "a cursor far away": _answer(state=STATE | {"cursor_x": 1 << 40}),
    "a window far away": _answer(state=STATE | {"windows": [{"width": 1 << 40}]}),
    "no results": _answer(results=None),
    "results in no order": _answer(results=[{"index": 1}]),
    "more results than actions": _answer(results=[{"index": 0}, {"index": 1}]),
    "an image that is not there": _answer(results=[{"index": 0, "image": 0}]),
    "no images": _answer(images=None),
    "an image that is none": _answer(images=["x"]),
    "too many images": _answer(images=[image("action", b"x", 1, 1)] * 67),
    "an image longer than the body": _answer(images=[image("shot", png(8, 4, 1) + b"x", 8, 4)]),
    "an image shorter than the body": _answer(images=[image("shot", png(8, 4, 1)[:-1], 8, 4)]),
    "an empty image": _answer(images=[image("shot", b"", 8, 4)]),
    "an image of minus one byte": _answer(images=[image("shot", b"", 8, 4, bytes=-1)]),
    "another size": _answer(images=[image("shot", png(8, 4, 1), 1280, 800)]),
    "another format": _answer(images=[image("shot", png(8, 4, 1), 8, 4, "webp")]),
    "an unknown format": _answer(images=[image("shot", png(8, 4, 1), 8, 4, "svg")]),
    "a picture before that nobody asked for": _answer(images=[image("before", png(8, 4, 1), 8, 4)]),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_found(lie: str) -> None:
    batch = Batch(actions=[CLICK], shot=Shot())
    assert read_performed(*_answer(), batch, before=False).shot is not None
    with pytest.raises(BadAnswer):
        read_performed(*LIES[lie], batch, before=False)


def test_two_shots_are_one_too_many() -> None:
    data = png(8, 4, 1)
    head, _ = _answer(images=[image("shot", data, 8, 4)] * 2)
    with pytest.raises(BadAnswer):
        read_performed(head, data * 2, Batch(actions=[CLICK], shot=Shot()), before=False)


def test_words_of_the_screen_are_bounded_and_storable() -> None:
    window = {"title": "t" * 5000, "program": "p\0"}
    state = STATE | {"title": "a\ud800b\0" + "c" * 5000, "windows": [window] * 500, "held": ["k" * 100] * 100}
    results = [{"index": 0, "text": "x" * (1 << 21), "detail": "d" * 5000, "error": "ÉÉ"}]
    done = read_performed(*_answer(state=state, results=results), Batch(actions=[CLICK], shot=Shot()), before=False)
    assert done.state is not None
    assert done.state.title == "a\ufffdb\ufffd" + "c" * 996
    assert len(done.state.windows) == 200
    assert (len(done.state.windows[0].title), done.state.windows[0].program) == (1000, "p\ufffd")
    assert done.state.held == ["k" * 40] * 64
    assert (done.results[0].error, len(done.results[0].detail), len(done.results[0].text)) == ("failed", 500, 1 << 20)


def test_a_request_that_failed_as_a_whole_has_no_more_to_say() -> None:
    done = read_performed({"id": 1, "error": {"type": "busy"}}, b"", Batch(), before=True)
    assert (done.error, done.state) == ("busy", None)


# -- pictures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ENCODERS)
def test_the_size_is_read_from_the_picture_itself(format: Any) -> None:
    assert size_of(format, ENCODERS[format](4096, 17, 5)) == (4096, 17)
    with pytest.raises(NotAPicture):
        size_of(format, ENCODERS[format](4097, 17, 5))


@pytest.mark.parametrize("format", ["png", "webp", "jpeg"])
@given(st.binary(max_size=64), st.integers(0, 40))
def test_no_bytes_break_the_reader(format: Any, noise: bytes, keep: int) -> None:
    for data in (noise, ENCODERS[format](8, 8, 1)[:keep] + noise):
        try:
            width, height = size_of(format, data)
        except NotAPicture:
            continue
        assert 0 < width <= 4096
        assert 0 < height <= 4096


def test_a_jpeg_of_segments_without_end_is_given_up() -> None:
    with pytest.raises(NotAPicture):
        size_of("jpeg", b"\xff\xd8" + b"\xff\xfe\x00\x02" * 2_000_000)
