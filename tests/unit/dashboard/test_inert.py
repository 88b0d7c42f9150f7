"""Text of agents on pages."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.dashboard import display
from service.dashboard.inert import inert


@pytest.mark.fault(99, 16)
@given(st.text(max_size=300))
def test_nothing_that_acts_is_left(text: str) -> None:
    left = {unicodedata.category(c) for c in inert(text)} if text else set[str]()
    shown = [c for c in inert(text) if unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n"]
    assert not shown
    assert "Cf" not in left or not any(unicodedata.bidirectional(c) in _TURNING for c in inert(text))


_TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def test_names() -> None:
    assert inert("\x1b]52;c;x\x07") == "␛]52;c;x␇"
    assert inert("a\u202eb") == "a⟨U+202E⟩b"
    assert inert("x" * 30, 10) == "x" * 10 + " …[20 more]"


def test_display() -> None:
    assert display.size(1536) == "1.5 KiB"
    assert display.size(12) == "12 B"
    assert display.duration(59.94) == "59.9 s"
    assert display.duration(3725) == "1 h 02 min"
    assert display.points(3.0, 4.0) == "3 / 4"
