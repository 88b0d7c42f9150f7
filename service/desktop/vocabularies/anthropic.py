"""Anthropic's computer tools: three versions of one tool, and the toolset whose members are tools of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.desktop.vocabularies import keys, sizes
from service.desktop.vocabularies.adapter import Adapter, Payload, Reader, Writer, bounded
from service.desktop.vocabularies.contract import Reading
from service.desktop.vocabularies.fields import Fields, act
from service.desktop.vocabularies.place import Place
from service.desktop.vocabularies.wheel import WAYS, way_of
from service.domain.desktop import MAX_WAIT_S, ActionType, Button, CoordinateSpace, DesktopAction, Point, Size

_CLICKS: Mapping[str, tuple[Button, int]] = {
    "left_click": ("left", 1),
    "right_click": ("right", 1),
    "middle_click": ("middle", 1),
    "double_click": ("left", 2),
    "triple_click": ("left", 3),
}
_MAX_KEY_TEXT = 400
_MAX_CLICKS = 100


@dataclass(frozen=True, slots=True)
class Version:
    words: frozenset[str]
    points: bool = True
    """Clicks and drags say where they begin."""
    repeats: bool = False
    whole_seconds: bool = False


_FIRST = frozenset({*_CLICKS} - {"triple_click"}) | {
    "key",
    "type",
    "mouse_move",
    "left_click_drag",
    "screenshot",
    "cursor_position",
}
_SECOND = _FIRST | {"left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait", "triple_click"}
_THIRD = _SECOND | {"zoom"}
VERSIONS = {
    "anthropic.20241022": Version(_FIRST, points=False),
    "anthropic.20250124": Version(_SECOND),
    "anthropic.20251124": Version(_THIRD),
    "anthropic.computer_toolset_20260801": Version(_THIRD, repeats=True, whole_seconds=True),
}


class Anthropic(Adapter):
    """Payload: the call's input; of the toolset with the member's name as ``action``."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.version = VERSIONS[name]

    def image_size(self, screen: Size, model: str | None) -> Size:
        return sizes.image_size(screen, f"claude {model or ''}")

    def read(self, payload: Payload, space: CoordinateSpace, screen: Size) -> Reading:
        word = Fields(payload, "computer").text("action", most=_MAX_KEY_TEXT)
        if word not in self.version.words:
            raise self.unknown(word, self.version.words)
        actions = bounded(_READERS[word](Fields(payload, word), Place(space, screen)))
        return Reading(self.marked(actions, payload))

    def say(self, action: DesktopAction, place: Place) -> Payload | None:
        writer = _WRITERS.get(action.type)
        payload = writer(action, place) if writer is not None else None
        if payload is None or payload["action"] not in self.version.words:
            return None
        return payload if self._allows(action) else None

    def _allows(self, action: DesktopAction) -> bool:
        version = self.version
        if version.whole_seconds and action.seconds != int(action.seconds):
            return False
        if action.repeat > 1 and not version.repeats:
            return False
        if action.type is ActionType.DRAG:
            return len(action.path) == (2 if version.points else 1)
        return version.points or action.type is not ActionType.CLICK or action.x is None


def _at(fields: Fields, place: Place) -> dict[str, int]:
    return _point(fields, place, "coordinate").model_dump() if fields.has("coordinate") else {}


def _point(fields: Fields, place: Place, name: str) -> Point:
    x, y = fields.numbers(name, 2)
    return place.point(x, y)


def _held(fields: Fields) -> list[str]:
    """Modifiers, which the tool's versions call one or the other."""
    name = "text" if fields.has("text") else "key"
    return keys.combination(fields.text(name, most=_MAX_KEY_TEXT)) if fields.text(name, "") else []


def _clicking(button: Button, count: int) -> Reader:
    return lambda fields, place: [
        act(ActionType.CLICK, button=button, count=count, modifiers=_held(fields), **_at(fields, place))
    ]


def _key(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    del place
    text = fields.text("text", most=_MAX_KEY_TEXT)
    repeat = fields.whole("repeat", 1, _MAX_CLICKS, 1)
    # Several combinations, as ``xdotool key`` takes them: "Down Down Return".
    return [act(ActionType.KEY, keys=keys.combination(part), repeat=repeat) for part in text.split() or [text]]


def _hold(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    del place
    seconds = fields.number("duration", 0, MAX_WAIT_S)
    return [act(ActionType.HOLD_KEY, keys=keys.combination(fields.text("text", most=_MAX_KEY_TEXT)), seconds=seconds)]


def _scroll(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    right, down = fields.choice("scroll_direction", WAYS)
    amount = fields.whole("scroll_amount", 1, _MAX_CLICKS)
    where = _at(fields, place)
    return [act(ActionType.SCROLL, dx=right * amount, dy=down * amount, modifiers=_held(fields), **where)]


def _drag(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    start = [_point(fields, place, "start_coordinate")] if fields.has("start_coordinate") else []
    return [act(ActionType.DRAG, path=[*start, _point(fields, place, "coordinate")], modifiers=_held(fields))]


def _zoom(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    return [act(ActionType.ZOOM, region=place.region(fields.numbers("region", 4)))]


_READERS: Mapping[str, Reader] = {
    **{word: _clicking(*click) for word, click in _CLICKS.items()},
    "key": _key,
    "hold_key": _hold,
    "type": lambda fields, _: [act(ActionType.TYPE, text=fields.text("text"))],
    "cursor_position": lambda _, __: [act(ActionType.CURSOR_POSITION)],
    "mouse_move": lambda fields, place: [act(ActionType.MOVE, **_point(fields, place, "coordinate").model_dump())],
    "left_mouse_down": lambda fields, place: [act(ActionType.MOUSE_DOWN, **_at(fields, place))],
    "left_mouse_up": lambda fields, place: [act(ActionType.MOUSE_UP, **_at(fields, place))],
    "left_click_drag": _drag,
    "scroll": _scroll,
    "wait": lambda fields, _: [act(ActionType.WAIT, seconds=fields.number("duration", 0, MAX_WAIT_S))],
    "screenshot": lambda _, __: [act(ActionType.SCREENSHOT)],
    "zoom": _zoom,
}


def _with(action: DesktopAction, place: Place, /, **words: object) -> Payload:
    """Add where and what is held."""
    where = {} if action.x is None or action.y is None else {"coordinate": place.words(Point(x=action.x, y=action.y))}
    return {**words, **where, **({"text": _joined(action.modifiers)} if action.modifiers else {})}


def _joined(names: Sequence[str]) -> str:
    return "+".join(keys.said(names, keys.XDOTOOL))


def _seconds(action: DesktopAction) -> int | float:
    return int(action.seconds) if action.seconds == int(action.seconds) else action.seconds


def _say_click(action: DesktopAction, place: Place) -> Payload | None:
    words = [word for word, click in _CLICKS.items() if click == (action.button, action.count)]
    return _with(action, place, action=words[0]) if words else None


def _say_key(action: DesktopAction, place: Place) -> Payload:
    del place
    repeat = {"repeat": action.repeat} if action.repeat > 1 else {}
    return {"action": "key", "text": _joined(action.keys), **repeat}


def _say_drag(action: DesktopAction, place: Place) -> Payload:
    points = [place.words(point) for point in action.path]
    start = {"start_coordinate": points[0]} if len(points) > 1 else {}
    return _with(action, place, action="left_click_drag", **start, coordinate=points[-1])


def _say_scroll(action: DesktopAction, place: Place) -> Payload | None:
    way, amount = way_of(action), abs(action.dx or action.dy)
    return None if way is None else _with(action, place, action="scroll", scroll_direction=way, scroll_amount=amount)


def _say_zoom(action: DesktopAction, place: Place) -> Payload | None:
    return {"action": "zoom", "region": place.corners(action.region)} if action.region is not None else None


_WRITERS: Mapping[ActionType, Writer] = {
    ActionType.CLICK: _say_click,
    ActionType.KEY: _say_key,
    ActionType.HOLD_KEY: lambda a, _: {"action": "hold_key", "text": _joined(a.keys), "duration": _seconds(a)},
    ActionType.TYPE: lambda a, _: {"action": "type", "text": a.text},
    ActionType.CURSOR_POSITION: lambda _, __: {"action": "cursor_position"},
    ActionType.MOVE: lambda a, place: _with(a, place, action="mouse_move"),
    ActionType.MOUSE_DOWN: lambda _, __: {"action": "left_mouse_down"},
    ActionType.MOUSE_UP: lambda _, __: {"action": "left_mouse_up"},
    ActionType.DRAG: _say_drag,
    ActionType.SCROLL: _say_scroll,
    ActionType.WAIT: lambda a, _: {"action": "wait", "duration": _seconds(a)},
    ActionType.SCREENSHOT: lambda _, __: {"action": "screenshot"},
    ActionType.ZOOM: _say_zoom,
}
