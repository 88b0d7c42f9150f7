"""What holds for every vocabulary: payloads of any kind are refused in words or read within bounds, and are kept."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.desktop.vocabularies import keys
from service.desktop.vocabularies.fields import finite
from service.desktop.vocabularies.raw import MAX_RAW_BYTES, kept
from service.desktop.vocabularies.registry import default_for, names, vocabulary
from service.desktop.vocabularies.unified import function_tools
from service.domain.cleaning import is_clean
from service.domain.desktop import MAX_ACTIONS, CoordinateSpace, Size
from service.domain.errors import Invalid
from service.domain.models import Dialect

SCREEN = Size(width=1280, height=800)
_WORDS = [
    "action",
    "actions",
    "type",
    "name",
    "args",
    "action_type",
    "parameters",
    "x",
    "y",
    "coordinate",
    "keys",
    "text",
]
_VALUES = [
    "left_click",
    "click",
    "scroll",
    "key",
    "CLICK",
    "click_at",
    "zoom",
    "hold_key",
    "drag",
    "keypress",
    "hotkey",
]
_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(_VALUES) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=6),
    max_leaves=12,
)


@pytest.mark.parametrize("name", names())
@settings(max_examples=60, deadline=None)
@given(payload=st.dictionaries(st.sampled_from(_WORDS), _JSON, max_size=6))
def test_a_payload_is_read_or_refused_in_words(name: str, payload: dict[str, Any]) -> None:
    spoken = vocabulary(name)
    try:
        reading = spoken.read(payload, spoken.space(SCREEN), SCREEN)
    except Invalid as refused:
        if refused.type not in ("unknown_action", "bad_action") or not 0 < len(refused.detail) < 2000:
            raise
        return
    assert len(reading.actions) <= MAX_ACTIONS
    for action in reading.actions:
        assert action.raw is not None
        assert is_clean(action.raw.payload)
        assert action.x is None or action.x < SCREEN.width


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, True, "1", None, [1]])
def test_what_is_no_number(value: object) -> None:
    assert finite(value) is None


def test_one_pixel_over_an_edge_is_rounding_and_two_are_an_error() -> None:
    spoken = vocabulary("openai.computer")
    space = CoordinateSpace(width=640, height=400)
    [action] = spoken.read({"action": {"type": "move", "x": 640, "y": -1}}, space, SCREEN).actions
    assert (action.x, action.y) == (1279, 0)
    for x, y in ((641, 0), (0, 401), (-2, 0), (0, -1.5)):
        with pytest.raises(Invalid, match="outside the picture of 640x400 pixels"):
            spoken.read({"action": {"type": "move", "x": x, "y": y}}, space, SCREEN)


def test_coordinates_of_a_scaled_picture_are_those_of_the_screen() -> None:
    spoken = vocabulary("anthropic.20251124")
    space = CoordinateSpace(width=1024, height=640)
    payload = {"action": "left_click_drag", "start_coordinate": [0, 0], "coordinate": [512, 320]}
    [drag] = spoken.read(payload, space, SCREEN).actions
    assert [(point.x, point.y) for point in drag.path] == [(0, 0), (640, 400)]
    [zoom] = spoken.read({"action": "zoom", "region": [512, 0, 1024, 320]}, space, SCREEN).actions
    assert zoom.region is not None
    assert zoom.region.model_dump() == {"x0": 640, "y0": 0, "x1": 1280, "y1": 400}


def test_a_small_payload_is_kept_as_it_came() -> None:
    payload = {"action": "wait", "duration": 1, "of_tomorrow": [{"a": None}]}
    [action] = vocabulary("anthropic.20250124").read(payload, CoordinateSpace(width=9, height=9), SCREEN).actions
    assert action.raw is not None
    assert action.raw.payload == payload


def test_a_large_payload_is_kept_cut_with_a_mark() -> None:
    text = "ä" * 60_000
    [action] = (
        vocabulary("anthropic.20250124")
        .read({"action": "type", "text": text}, CoordinateSpace(width=9, height=9), SCREEN)
        .actions
    )
    assert action.text == text
    assert action.raw is not None
    assert action.raw.payload["action"] == "type"
    assert action.raw.payload["text"].endswith(" …[59744 characters cut]")


@pytest.mark.parametrize(
    "payload",
    [
        {f"field {n}": "x" * 300 for n in range(500)},
        {"rows": [{"a": ["b" * 200] * 50}] * 900},
        {"\0": "\ud800" * 9000},
        {"n": math.nan, "text": "\\" * 90_000},
    ],
)
def test_whatever_is_kept_is_bounded_and_storable(payload: dict[str, Any]) -> None:
    raw = kept("some.thing", payload)
    assert is_clean(raw.payload)
    assert len(json.dumps(raw.payload, ensure_ascii=False).encode()) <= MAX_RAW_BYTES


@pytest.mark.parametrize("words", [keys.XDOTOOL, keys.OPENAI, keys.GEMINI, keys.PYAUTOGUI])
def test_each_familys_words_are_read_as_they_are_meant(words: keys.Words) -> None:
    for name in set(keys.NAMES.values()):
        assert keys.combination("+".join(keys.said([name], words))) == [name]


@pytest.mark.parametrize(
    ("text", "pressed"),
    [
        ("ctrl+S", ["ctrl", "s"]),
        ("shift+A", ["shift", "a"]),
        ("A", ["A"]),
        ("+", ["plus"]),
        ("ctrl++", ["ctrl", "plus"]),
        ("CMD+Option+Esc", ["super", "alt", "Escape"]),
        ("\n", ["Return"]),
        ("é", ["é"]),
        ("eacute", ["eacute"]),
        (" ctrl + a ", ["ctrl", "a"]),
    ],
)
def test_a_combination(text: str, pressed: list[str]) -> None:
    assert keys.combination(text) == pressed


@pytest.mark.parametrize("text", ["", "  ", "ctrl+", "+ctrl", "a++b", "+".join("abcdefghijklmnopq")])
def test_what_is_no_combination(text: str) -> None:
    with pytest.raises(Invalid, match="is no key or combination"):
        keys.combination(text)


@pytest.mark.parametrize(
    ("name", "model", "screen", "sent"),
    [
        ("anthropic.20250124", "claude-sonnet-4-5", (1280, 800), (1280, 800)),
        ("anthropic.20250124", "claude-sonnet-4-5-20250929", (1920, 1080), (1429, 804)),
        ("anthropic.20251124", "claude-opus-4-6", (1600, 400), (1568, 392)),
        ("anthropic.20251124", None, (1920, 1200), (1356, 848)),
        ("anthropic.20251124", "us.anthropic.claude-opus-4-7-20260416-v1:0", (1920, 1080), (1920, 1080)),
        ("anthropic.computer_toolset_20260801", "claude-sonnet-5-5", (2560, 1440), (2560, 1440)),
        ("anthropic.computer_toolset_20260801", "anthropic/claude-opus-4.8", (4096, 2160), (2576, 1358)),
        ("anthropic.20251124", "claude-opus-4-7", (2560, 1460), (2553, 1456)),
        ("openai.computer", "gpt-6-sol", (3840, 2160), (3840, 2160)),
        ("gemini.3_5", "gemini-3.5-flash", (3840, 2160), (3840, 2160)),
        ("workstead.unified", "gpt-5.4", (3840, 2160), (3840, 2160)),
        ("workstead.unified", "qwen3-vl", (1920, 1080), (1429, 804)),
        ("workstead.unified", "openrouter/claude-opus-4-7", (1920, 1080), (1920, 1080)),
    ],
)
def test_the_picture_that_no_provider_shrinks(
    name: str, model: str | None, screen: tuple[int, int], sent: tuple[int, int]
) -> None:
    size = vocabulary(name).image_size(Size(width=screen[0], height=screen[1]), model)
    assert (size.width, size.height) == sent


@given(size=st.builds(Size, width=st.integers(320, 4096), height=st.integers(320, 4096)))
def test_a_shrunk_picture_keeps_its_shape(size: Size) -> None:
    sent = vocabulary("anthropic.20250124").image_size(size, "claude-3-7-sonnet-latest")
    assert max(sent.width, sent.height) <= 1568
    assert sent.width * sent.height <= 1_150_000
    assert abs(sent.width / sent.height - size.width / size.height) < 0.02 * size.width / size.height


@pytest.mark.parametrize(
    ("dialect", "model", "name"),
    [
        (Dialect.ANTHROPIC, "claude-3-7-sonnet-20250219", "anthropic.20250124"),
        (Dialect.ANTHROPIC, "claude-opus-4-20250514", "anthropic.20250124"),
        (Dialect.ANTHROPIC, "claude-sonnet-4-5-20250929", "anthropic.20250124"),
        (Dialect.ANTHROPIC, "claude-haiku-4-5", "anthropic.20250124"),
        (Dialect.ANTHROPIC, "claude-opus-4-5-20251101", "anthropic.20251124"),
        (Dialect.ANTHROPIC, "claude-sonnet-4-6", "anthropic.20251124"),
        (Dialect.ANTHROPIC, "claude-opus-4-7", "anthropic.20251124"),
        (Dialect.ANTHROPIC, "claude-opus-4-8", "anthropic.computer_toolset_20260801"),
        (Dialect.ANTHROPIC, "claude-opus-5-5", "anthropic.computer_toolset_20260801"),
        (Dialect.ANTHROPIC, "claude-fable-5", "anthropic.computer_toolset_20260801"),
        (Dialect.OPENAI, "computer-use-preview-2025-03-11", "openai.computer_use_preview"),
        (Dialect.OPENAI, "gpt-5.3-chat-latest", None),
        (Dialect.OPENAI, "gpt-5.4", "openai.computer"),
        (Dialect.OPENAI, "gpt-5.4-mini-2026-03-17", "openai.computer"),
        (Dialect.OPENAI, "gpt-5.4-nano", None),
        (Dialect.OPENAI, "gpt-6-sol", "openai.computer"),
        (Dialect.OPENAI, "gpt-4o", None),
        (Dialect.OPENAI, "qwen3-vl", None),
        (Dialect.GEMINI, "gemini-3.5-flash", "gemini.3_5"),
        (Dialect.GEMINI, "gemini-4-pro", "gemini.3_5"),
        (Dialect.GEMINI, "gemini-2.5-computer-use-preview-10-2025", "gemini.legacy"),
        (Dialect.GEMINI, "gemini-3-flash-preview", "gemini.legacy"),
        (Dialect.GEMINI, "gemini-2.5-flash", None),
        (Dialect.OPAQUE, "claude-opus-5", None),
    ],
)
def test_what_a_model_was_trained_with(dialect: Dialect, model: str, name: str | None) -> None:
    assert default_for(dialect, model) == name


def test_chat_completions_have_no_computer_tool() -> None:
    assert default_for(Dialect.OPENAI, "gpt-5.4", chat=True) is None


def test_an_unknown_vocabulary_is_refused_with_those_there_are() -> None:
    with pytest.raises(Invalid) as refused:
        vocabulary("nobody.1")
    assert refused.value.type == "unknown_vocabulary"
    assert refused.value.fields["vocabularies"] == names()


def test_the_plain_tool_describes_every_action_and_the_pictures_size() -> None:
    [tool] = function_tools(Size(width=1024, height=640))
    assert "1024 wide and 640 high" in tool.description
    action = tool.parameters["properties"]["actions"]["items"]
    assert action["properties"]["x"]["maximum"] == 1023
    for type in action["properties"]["type"]["enum"]:
        assert type in action["properties"]["type"]["description"]


def test_a_text_too_long_to_type_is_refused() -> None:
    payload = {"type": "type", "text": "a" * 65_537}
    with pytest.raises(Invalid, match="at most 65536 characters are typed"):
        vocabulary("workstead.unified").read(payload, CoordinateSpace(width=9, height=9), SCREEN)
