"""Gemini from 3.5 on."""

from collections.abc import Mapping, Sequence

from service.desktop.vocabularies import keys
from service.desktop.vocabularies.adapter import Payload, Reader, Writer
from service.desktop.vocabularies.fields import Fields, act
from service.desktop.vocabularies.gemini_common import (
    BACK,
    FORWARD,
    Gemini,
    call,
    drag,
    navigate,
    pressing,
    said_at,
    screenshot,
)
from service.desktop.vocabularies.place import Place
from service.desktop.vocabularies.wheel import CLICK_PIXELS, WAYS, clicks, way_of
from service.domain.desktop import MAX_WAIT_S, ActionType, Button, DesktopAction

_CLICKS: Mapping[str, tuple[Button, int]] = {
    "click": ("left", 1),
    "double_click": ("left", 2),
    "triple_click": ("left", 3),
    "middle_click": ("middle", 1),
    "right_click": ("right", 1),
}
_DEFAULT_PIXELS = 300
_MAX_PIXELS = 10_000


def _clicking(button: Button, count: int) -> Reader:
    return lambda fields, place: [act(ActionType.CLICK, button=button, count=count, **place.pair(fields).model_dump())]


def _type(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    del place
    enter = [act(ActionType.KEY, keys=["Return"])] if fields.flag("press_enter", default=False) else []
    return [act(ActionType.TYPE, text=fields.text("text")), *enter]


def _scroll(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    right, down = fields.choice("direction", WAYS)
    amount = _amount(fields)
    return [act(ActionType.SCROLL, dx=right * amount, dy=down * amount, **place.at(fields))]


def _amount(fields: Fields) -> int:
    """The environments say it in their own units: desktops in clicks of the wheel, browsers in pixels."""
    if fields.has("magnitude_in_wheel_clicks"):
        return fields.whole("magnitude_in_wheel_clicks", 1, _MAX_PIXELS // CLICK_PIXELS)
    name = "magnitude_in_pixels" if fields.has("magnitude_in_pixels") else "magnitude"
    return clicks(fields.number(name, 1, _MAX_PIXELS, _DEFAULT_PIXELS))


def _keys(type: ActionType, name: str) -> Reader:
    return lambda fields, _: [act(type, keys=keys.taken(fields, name))]


_READERS: Mapping[str, Reader] = {
    **{word: _clicking(*click) for word, click in _CLICKS.items()},
    "mouse_down": lambda fields, place: [act(ActionType.MOUSE_DOWN, **place.at(fields))],
    "mouse_up": lambda fields, place: [act(ActionType.MOUSE_UP, **place.at(fields))],
    "move": lambda fields, place: [act(ActionType.MOVE, **place.pair(fields).model_dump())],
    "type": _type,
    "drag_and_drop": drag,
    "wait": lambda fields, _: [act(ActionType.WAIT, seconds=fields.number("seconds", 0, MAX_WAIT_S, 1.0))],
    "press_key": _keys(ActionType.KEY, "key"),
    "key_down": _keys(ActionType.KEY_DOWN, "key"),
    "key_up": _keys(ActionType.KEY_UP, "key"),
    "hotkey": _keys(ActionType.KEY, "keys"),
    "take_screenshot": screenshot,
    "scroll": _scroll,
    "go_back": pressing(*BACK),
    "go_forward": pressing(*FORWARD),
    "navigate": navigate,
}


def _say_click(action: DesktopAction, place: Place) -> Payload | None:
    words = [word for word, click in _CLICKS.items() if click == (action.button, action.count)]
    return said_at(action, place, words[0]) if words else None


def _say_button(name: str) -> Writer:
    return lambda action, place: call(name) if action.x is None else said_at(action, place, name)


def _say_drag(action: DesktopAction, place: Place) -> Payload | None:
    if len(action.path) != 2:
        return None
    (start_x, start_y), (end_x, end_y) = (place.words(point) for point in action.path)
    return call("drag_and_drop", start_x=start_x, start_y=start_y, end_x=end_x, end_y=end_y)


def _say_key(action: DesktopAction, place: Place) -> Payload:
    del place
    names = keys.said(action.keys, keys.GEMINI)
    return call("press_key", key=names[0]) if len(names) == 1 else call("hotkey", keys=names)


def _say_held(name: str) -> Writer:
    return lambda action, _: call(name, key="+".join(keys.said(action.keys, keys.GEMINI)))


def _say_scroll(action: DesktopAction, place: Place) -> Payload | None:
    way = way_of(action)
    if way is None:
        return None
    amount = abs(action.dx or action.dy) * CLICK_PIXELS
    if action.x is None:
        return call("scroll", direction=way, magnitude_in_pixels=amount)
    return said_at(action, place, "scroll", direction=way, magnitude_in_pixels=amount)


def _say_wait(action: DesktopAction, place: Place) -> Payload | None:
    del place
    return call("wait", seconds=int(action.seconds)) if action.seconds == int(action.seconds) else None


_WRITERS: Mapping[ActionType, Writer] = {
    ActionType.CLICK: _say_click,
    ActionType.MOUSE_DOWN: _say_button("mouse_down"),
    ActionType.MOUSE_UP: _say_button("mouse_up"),
    ActionType.MOVE: lambda a, place: said_at(a, place, "move"),
    ActionType.TYPE: lambda a, _: call("type", text=a.text, press_enter=False),
    ActionType.DRAG: _say_drag,
    ActionType.WAIT: _say_wait,
    ActionType.KEY: _say_key,
    ActionType.KEY_DOWN: _say_held("key_down"),
    ActionType.KEY_UP: _say_held("key_up"),
    ActionType.SCREENSHOT: lambda _, __: call("take_screenshot"),
    ActionType.SCROLL: _say_scroll,
    ActionType.NAVIGATE: lambda a, _: call("navigate", url=a.text),
}


class Gemini35(Gemini):
    readers = _READERS
    writers = _WRITERS
