"""Whatever a vocabulary can say, it means what was to be said: any action, screen and picture."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.desktop.vocabularies.contract import Vocabulary
from service.desktop.vocabularies.place import Place
from service.desktop.vocabularies.registry import names, vocabulary
from service.domain.desktop import ActionType, CoordinateSpace, DesktopAction, Size
from service.domain.errors import Invalid

_KEYS = st.sampled_from(
    ["Return", "Page_Up", "Left", "F5", "KP_0", "space", "a", "é", "plus", "XF86AudioPlay", "super"]
)
_MODIFIERS = st.lists(st.sampled_from(["ctrl", "shift", "alt", "super"]), unique=True, max_size=2)
_SIZES = st.builds(Size, width=st.integers(320, 4096), height=st.integers(320, 4096))
_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


_KEY_LIST = st.lists(_KEYS, min_size=1, max_size=3, unique=True)
_SECONDS = st.sampled_from([0.5, 1.0, 2.0, 5.0, 100.0])
_CLICKS = st.integers(-100, 100).filter(bool)
_PARTS: dict[str, st.SearchStrategy[Any]] = {
    "modifiers": _MODIFIERS,
    "button": st.sampled_from(["left", "middle", "right", "back", "forward"]),
    "count": st.integers(1, 3),
    "keys": _KEY_LIST,
    "repeat": st.integers(1, 3),
    "seconds": _SECONDS,
    "text": _TEXT,
    "dx": _CLICKS,
    "dy": _CLICKS,
}
_FIELDS: dict[ActionType, str] = {
    ActionType.SCREENSHOT: "",
    ActionType.ZOOM: "region",
    ActionType.CLICK: "at? button count modifiers",
    ActionType.MOVE: "at",
    ActionType.MOUSE_DOWN: "at?",
    ActionType.MOUSE_UP: "at?",
    ActionType.DRAG: "path",
    ActionType.SCROLL: "at? dx|dy modifiers",
    ActionType.KEY: "keys repeat",
    ActionType.KEY_DOWN: "keys",
    ActionType.KEY_UP: "keys",
    ActionType.HOLD_KEY: "keys seconds",
    ActionType.TYPE: "text",
    ActionType.WAIT: "seconds",
    ActionType.CURSOR_POSITION: "",
    ActionType.NAVIGATE: "text",
    ActionType.CLIPBOARD_READ: "",
    ActionType.CLIPBOARD_WRITE: "text",
    ActionType.WINDOWS: "",
    ActionType.RELEASE_ALL: "",
}


@st.composite
def _actions(draw: st.DrawFn, screen: Size) -> DesktopAction:
    x, y = st.integers(0, screen.width - 1), st.integers(0, screen.height - 1)
    type = draw(st.sampled_from(sorted(_FIELDS)))
    fields: dict[str, Any] = {}
    for part in _FIELDS[type].split():
        if part == "at" or (part == "at?" and draw(st.booleans())):
            fields |= {"x": draw(x), "y": draw(y)}
        elif part == "path":
            fields["path"] = draw(st.lists(st.fixed_dictionaries({"x": x, "y": y}), min_size=1, max_size=4))
        elif part == "region":
            fields["region"] = {"x0": 0, "y0": 0, "x1": draw(x) + 1, "y1": draw(y) + 1}
        elif part != "at?":
            name = draw(st.sampled_from(part.split("|")))
            fields[name] = draw(_PARTS[name])
    return DesktopAction(type=type, **fields)


@pytest.mark.parametrize("name", names())
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_is_written_reads_as_it_was(name: str, data: st.DataObject) -> None:
    screen, image = data.draw(_SIZES), data.draw(_SIZES)
    action = data.draw(_actions(screen))
    spoken = vocabulary(name)
    space = spoken.space(image)
    payload = _written(spoken, action, space, screen)
    if payload is None:
        return
    [read] = spoken.read(payload, space, screen).actions
    places = {"x", "y", "path", "region", "raw"}
    assert read.model_dump(exclude=places) == action.model_dump(exclude=places)
    for was, now in zip(_points(action), _points(read), strict=True):
        assert abs(was[0] - now[0]) <= 1 + screen.width / space.width
        assert abs(was[1] - now[1]) <= 1 + screen.height / space.height


def _points(action: DesktopAction) -> list[tuple[int, int]]:
    own = [] if action.x is None or action.y is None else [(action.x, action.y)]
    corners = action.region and [(action.region.x0, action.region.y0), (action.region.x1, action.region.y1)]
    return [*own, *((point.x, point.y) for point in action.path), *(corners or [])]


@given(size=_SIZES, x=st.integers(0, 319), y=st.integers(0, 319))
def test_pixels_of_an_unscaled_picture_are_those_of_the_screen(size: Size, x: int, y: int) -> None:
    place = Place(vocabulary("openai.computer").space(size), size)
    assert place.words(place.point(x, y)) == [x, y]


EXPRESSIBLE = {
    "anthropic.20241022": "screenshot click move drag key type cursor_position",
    "anthropic.20250124": "screenshot click move mouse_down mouse_up drag scroll key hold_key type wait cursor_position",
    "openai.computer": "screenshot click move drag scroll key type wait",
    "gemini.3_5": "screenshot click move mouse_down mouse_up drag scroll key key_down key_up type wait navigate",
    "gemini.legacy": "click move drag scroll key wait navigate",
    "osworld.computer_13": "click move mouse_down mouse_up drag scroll key key_down key_up type wait",
    "workstead.unified": " ".join(type for type in ActionType if type is not ActionType.RESIZE),
}


@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_which_kinds_of_actions_there_are_words_for(name: str) -> None:
    """The property above says nothing of a vocabulary that refuses everything."""
    at = {"x": 5, "y": 5}
    first = name == "anthropic.20241022"
    fields: dict[str, dict[str, Any]] = {
        "zoom": {"region": {"x0": 0, "y0": 0, "x1": 9, "y1": 9}},
        "click": {} if first else at,
        "move": at,
        "drag": {"path": [at] if first or name.startswith("osworld") else [at, {"x": 9, "y": 9}]},
        "scroll": {"dy": 2} if name.startswith("osworld") else {"dy": 2, **at},
        **{type: {"keys": ["a"]} for type in ("key", "key_down", "key_up", "hold_key")},
        "wait": {"seconds": 5.0 if name == "gemini.legacy" else 2.0},
        "resize": {"size": {"width": 640, "height": 480}},
    }
    said = [type for type in ActionType if _can_say(name, DesktopAction(type=type, **fields.get(type, {})))]
    assert set(said) == set(EXPRESSIBLE[name].split())


def _can_say(name: str, action: DesktopAction) -> bool:
    screen = Size(width=1280, height=800)
    spoken = vocabulary(name)
    return _written(spoken, action, spoken.space(screen), screen) is not None


def _written(
    spoken: Vocabulary, action: DesktopAction, space: CoordinateSpace, screen: Size
) -> Mapping[str, Any] | None:
    """Null: there is no word for it, and the vocabulary says so."""
    try:
        return spoken.write(action, space, screen)
    except Invalid as refused:
        if refused.type != "inexpressible":
            raise
        return None
