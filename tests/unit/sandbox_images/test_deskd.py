"""The parts of deskd that need no screen. Its modules stand alone in their folder, so they are loaded from there."""

import importlib
import io
import json
import os
import struct
import sys
import threading
import time
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from sandbox_images.catalogue import HERE

SOURCES = HERE / "desktop" / "deskd"


def load(name: str) -> ModuleType:
    """Its own copy of what it imports, too: names as short as these belong to others elsewhere."""
    before = set(sys.modules)
    with patch.object(sys, "path", [str(SOURCES), *sys.path]):
        module = importlib.import_module(name)
    for new in set(sys.modules) - before:
        if str(getattr(sys.modules[new], "__file__", "")).startswith(str(SOURCES)):
            del sys.modules[new]
    return module


ENCODE, FIELDS, KEYS, PAUSE, SETTLE, WIRE = (
    load(name) for name in ("encode", "fields", "keys", "pause", "settle", "wire")
)
SIZE = 400, 300
Boxes = list[tuple[int, int, int, int]]


# --- wire


def said(data: bytes) -> Any:
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    try:
        return WIRE.receive(reader)
    finally:
        os.close(reader)


def frame(head: bytes, body: int = 0, size: int | None = None) -> bytes:
    return struct.pack(">II", len(head) if size is None else size, body) + head


def test_a_frame_is_an_object_and_the_end_is_none() -> None:
    assert said(frame(b'{"id": 1, "do": "ping"}')) == {"id": 1, "do": "ping"}
    assert said(b"") is None
    assert said(frame(b"{}")[:5]) is None


@pytest.mark.parametrize(
    "wrong", [frame(b"[]"), frame(b"{"), frame(b"{}", body=1), frame(b"", size=(8 << 20) + 1), frame(b"[" * 50_000)]
)
def test_a_frame_that_breaks_the_rules_is_refused(wrong: bytes) -> None:
    with pytest.raises(WIRE.Refused):
        said(wrong)


def test_what_is_sent_has_its_lengths_before_it_and_is_bounded() -> None:
    reader, writer = os.pipe()
    WIRE.send(writer, {"id": 1, "text": "ż\ud800"}, [b"abc", b"de"])
    head, body = struct.unpack(">II", os.read(reader, 8))
    assert json.loads(os.read(reader, head)) == {"id": 1, "text": "ż?"}
    assert (os.read(reader, 100), body) == (b"abcde", 5)
    with pytest.raises(ValueError, match="bytes"):
        WIRE.send(writer, {}, [bytes((24 << 20) + 1)])
    os.close(reader)
    os.close(writer)


# --- fields


def test_numbers_that_are_none_are_refused() -> None:
    for value in (True, 1.5, "1", None, -1, 11):
        with pytest.raises(FIELDS.Failed, match="x is"):
            FIELDS.whole({"x": value}, "x", 0, 10)
    for value in (True, float("nan"), float("inf"), -0.1, "1"):
        with pytest.raises(FIELDS.Failed, match="seconds"):
            FIELDS.seconds({"s": value}, "s", 10)
    assert FIELDS.whole({}, "x", 0, 10, 3) == 3


def test_a_place_is_on_the_screen_or_nowhere() -> None:
    assert FIELDS.point({}, (10, 10)) is None
    assert FIELDS.point({"x": 9, "y": 0}, (10, 10)) == (9, 0)
    for x, y in ((10, 0), (0, 10), (-1, 0)):
        with pytest.raises(FIELDS.Failed) as caught:
            FIELDS.point({"x": x, "y": y}, (10, 10))
        assert caught.value.word == "out_of_bounds"
    with pytest.raises(FIELDS.Failed, match="y is"):
        FIELDS.point({"x": 1}, (10, 10))


# --- keys


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("ENTER", "Return"),
        ("ARROWUP", "Up"),
        ("PgDn", "Page_Down"),
        ("cmd", "Super_L"),
        ("CTRL", "Control_L"),
        ("num5", "KP_5"),
        ("print_screen", "Print"),
        ("a", "a"),
        ("Return", "Return"),
        ("Nothing", "Nothing"),
    ],
)
def test_aliases(name: str, key: str) -> None:
    assert KEYS.canonical(name) == key


def test_characters_as_keysyms() -> None:
    assert KEYS.of_text("aé漢🙂\r\n\t") == [0x61, 0xE9, 0x1006F22, 0x101F642, 0xFF0D, 0xFF09]
    for character in "\x00\x07\x7f\x85\ud800":
        with pytest.raises(KEYS.Failed):
            KEYS.of_character(character)


def test_spare_keys_are_those_that_nobody_misses() -> None:
    assert KEYS.is_spare((0, 0))
    assert KEYS.is_spare((0x1008FF12, 0))
    assert KEYS.is_spare((0x1006F22,) * 4), "bound before, by a deskd that is gone"
    assert not KEYS.is_spare((0x61, 0x41))
    assert not KEYS.is_spare((0xFFE1, 0))


@given(st.lists(st.integers(0, 60), max_size=300), st.integers(1, 9))
def test_bursts_need_no_more_keys_than_there_are(text: list[int], room: int) -> None:
    fixed = set(range(20))
    pieces = list(KEYS.bursts(text, fixed, room))
    assert [keysym for piece, _ in pieces for keysym in piece] == text
    for piece, needed in pieces:
        assert len(needed) <= room
        assert set(needed) == set(piece) - fixed


# --- rest


class Screen:
    """A picture that is drawn on, and the watch over it; 30 ms a frame."""

    def __init__(self, quiet_s: float = 0.4, still: Boxes | None = None) -> None:
        self.image = Image.new("RGBX", SIZE, "white")
        self.now = 100.0
        self.rest = SETTLE.Rest(self.image, self.now, quiet_s, still or [])

    def fill(self, box: tuple[int, int, int, int], colour: str) -> None:
        ImageDraw.Draw(self.image).rectangle((box[0], box[1], box[2] - 1, box[3] - 1), fill=colour)

    def see(self) -> bool:
        self.now += 0.03
        return bool(self.rest.see(self.image, self.now))


def blinks(screen: Screen, boxes: Boxes, seconds: float) -> bool:
    """Whether it came to rest while each of them blinks, in a time of its own."""
    rested = False
    for tick in range(int(seconds / 0.03)):
        for number, box in enumerate(boxes):
            screen.fill(box, "black" if tick // (15 + number) % 2 else "white")
        rested = screen.see() or rested
    return rested


def test_a_screen_that_does_not_change_rests_after_the_quiet_time() -> None:
    screen = Screen(quiet_s=0.4)
    seen = [screen.see() for _ in range(20)]
    assert seen.index(True) * 0.03 == pytest.approx(0.4, abs=0.04)


def test_carets_here_and_there_are_rest() -> None:
    assert blinks(Screen(1.0), [(20, 20, 21, 37), (200, 100, 202, 120), (300, 200, 303, 230)], 1.2)


@pytest.mark.parametrize("box", [(100, 100, 109, 118), (50, 50, 200, 52), (10, 10, 300, 200)])
def test_what_comes_back_again_and_again_is_rest(box: tuple[int, int, int, int]) -> None:
    assert not blinks(Screen(1.0), [box], 0.9)
    assert blinks(Screen(1.0), [box], 3.0)


def test_what_goes_on_is_none() -> None:
    screen = Screen(0.3)
    for n in range(60):
        screen.fill((0, 50, n * 4 + 4, 60), "black")
        assert not screen.see()


def test_letters_that_come_one_by_one_are_a_change() -> None:
    screen = Screen(0.3)
    for n in range(36):
        if n % 4 == 0:
            screen.fill((20 + 2 * n, 50, 25 + 2 * n, 60), "black")
        assert not screen.see(), n


def test_many_small_changes_are_one_large() -> None:
    screen = Screen(0.3)
    for _ in range(9):
        assert not screen.see()
    for n in range(SETTLE.MOST_CARETS + 1):
        screen.fill((10 + 30 * n, 50, 12 + 30 * n, 60), "black")
    assert not any(screen.see() for _ in range(5))


def test_an_area_that_is_said_to_be_still_never_counts() -> None:
    screen = Screen(0.3, still=[(300, 0, 400, 40)])
    rested = False
    for n in range(20):
        screen.fill((310, 5, 390, 35), ("black", "red", "blue", "green", "gray")[n % 5])
        rested = screen.see() or rested
    assert rested


def test_another_size_begins_anew() -> None:
    screen = Screen(0.3)
    for _ in range(9):
        screen.see()
    screen.image = Image.new("RGBX", (500, 300), "white")
    assert not any(screen.see() for _ in range(9))
    assert any(screen.see() for _ in range(3))


def test_differences_are_boxes_apart() -> None:
    screen = Screen()
    before = screen.image.copy()
    screen.fill((10, 10, 30, 40), "black")
    screen.fill((100, 10, 101, 25), "blue")
    screen.fill((10, 200, 60, 220), "red")
    assert sorted(SETTLE.differences(before, screen.image)) == [
        (10, 10, 30, 40),
        (10, 200, 60, 220),
        (100, 10, 101, 25),
    ]
    assert SETTLE.differences(before, before) == []


# --- pictures


@pytest.mark.parametrize("form", ["png", "webp"])
def test_lossless_pictures_lose_nothing(form: str) -> None:
    picture = Image.effect_noise((123, 45), 80).convert("RGB")
    made = ENCODE.encode(picture, ENCODE.Format(form))
    read = Image.open(io.BytesIO(made.data))
    read.load()
    assert (read.format, read.mode, made.size) == (form.upper(), "RGB", (123, 45))
    assert read.tobytes() == picture.tobytes()


def test_a_picture_over_the_bound_is_too_large() -> None:
    noise = Image.frombytes("RGB", (2000, 1500), os.urandom(2000 * 1500 * 3))
    with pytest.raises(ENCODE.Failed) as caught:
        ENCODE.encode(noise, ENCODE.Format("png"))
    assert caught.value.word == "too_large"


def test_a_region_is_made_as_large_as_fits() -> None:
    assert ENCODE.fitting((80, 50), (1280, 800)) == (1280, 800)
    assert ENCODE.fitting((100, 10), (1280, 800)) == (1280, 128)
    assert ENCODE.fitting((1, 4000), (1280, 800)) == (1, 800)
    assert ENCODE.scaled(Image.new("RGB", (80, 50)), (40, 10)).size == (40, 10)


# --- waiting


def test_an_abort_ends_a_wait_and_the_next_batch_waits_again() -> None:
    pause = PAUSE.Pause()
    threading.Timer(0.05, pause.abort).start()
    began = time.monotonic()
    with pytest.raises(PAUSE.Aborted):
        pause.wait(30)
    assert time.monotonic() - began < 10
    with pytest.raises(PAUSE.Aborted):
        pause.check()
    pause.begin()
    pause.wait(0)
