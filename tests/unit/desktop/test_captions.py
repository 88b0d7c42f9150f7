"""What stands below the stills of a film."""

from typing import Any

import pytest

from service.desktop.film.captions import MOST_CHARS, caption, words
from service.desktop.film.making import STRIP, film_size
from service.domain.desktop import Size


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ({"type": "click", "x": 1, "y": 2}, "click (1, 2)"),
        ({"type": "click", "button": "right", "x": 1, "y": 2}, "right click (1, 2)"),
        ({"type": "click", "count": 2, "modifiers": ["ctrl"], "x": 1, "y": 2}, "double click ctrl (1, 2)"),
        ({"type": "key", "keys": ["ctrl", "s"]}, "key ctrl+s"),
        ({"type": "mouse_down"}, "mouse down"),
        ({"type": "scroll", "dy": 3, "x": 5, "y": 6}, "scroll down 3 (5, 6)"),
        ({"type": "scroll", "dx": -1, "dy": -2}, "scroll up 2 left 1"),
        ({"type": "drag", "path": [{"x": 1, "y": 1}, {"x": 2, "y": 2}, {"x": 3, "y": 3}]}, "drag (1, 1) (3, 3)"),
        ({"type": "type", "text": "two\nlines"}, "type “two lines”"),
        ({"type": "type", "text": "x" * 50}, f"type “{'x' * 40}…”"),
        ({"type": "wait", "seconds": 1.5}, "wait 1.5 s"),
        ({}, ""),
    ],
)
def test_an_action_in_words(action: dict[str, Any], said: str) -> None:
    assert words(action) == said


def test_a_caption_says_when_and_what() -> None:
    batch = [{"type": "click", "x": 1, "y": 2}, {"type": "type", "text": "a"}]
    assert caption(7, 83.9, batch) == "7   1:23   click (1, 2); type “a”"
    assert caption(1, -5, []) == "1   0:00   look"
    assert len(caption(1, 0, batch * 30)) == MOST_CHARS


@pytest.mark.parametrize(
    ("first", "sides"),
    [((1280, 800), (1280, 800)), ((1279, 801), (1280, 802)), ((4096, 2160), (1920, 1012)), ((4096, 1), (1920, 2))],
)
def test_frames_are_even_and_bounded(first: tuple[int, int], sides: tuple[int, int]) -> None:
    size = Size(width=first[0], height=first[1])
    assert film_size(size, captions=False) == Size(width=sides[0], height=sides[1])
    assert film_size(size, captions=True).height == sides[1] + STRIP
