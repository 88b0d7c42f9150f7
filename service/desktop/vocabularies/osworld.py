"""OSWorld's ``computer_13``: ``{"action_type": …, "parameters": {…}}``, or the parameters beside the type."""

from collections.abc import Mapping, Sequence

from service.desktop.vocabularies import keys
from service.desktop.vocabularies.adapter import Adapter, Payload, Reader, Writer
from service.desktop.vocabularies.contract import Reading
from service.desktop.vocabularies.fields import Fields, act
from service.desktop.vocabularies.place import Place
from service.domain.desktop import MAX_WAIT_S, ActionType, Button, CoordinateSpace, DesktopAction, Point, Size

_BUTTONS: Mapping[str, Button] = {"left": "left", "middle": "middle", "right": "right"}
_WAIT_S = 2.0
_MAX_CLICKS = 100


class OsWorld(Adapter):
    def read(self, payload: Payload, space: CoordinateSpace, screen: Size) -> Reading:
        whole = Fields(payload, "computer")
        word = whole.text("action_type", most=400)
        match word:
            case "DONE":
                return Reading((), ending="done")
            case "FAIL":
                return Reading((), ending="fail")
            case _ if word not in _READERS:
                raise self.unknown(word, [*_READERS, "DONE", "FAIL"])
            case _:
                fields = whole.inner("parameters").values if whole.has("parameters") else payload
                return Reading(self.marked(_READERS[word](Fields(fields, word), Place(space, screen)), payload))

    def say(self, action: DesktopAction, place: Place) -> Payload | None:
        writer = _WRITERS.get(action.type)
        return writer(action, place) if writer is not None else None


def _click(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    button = fields.choice("button", _BUTTONS, "left")
    return [act(ActionType.CLICK, button=button, count=fields.whole("num_clicks", 1, 3, 1), **place.at(fields))]


def _clicking(button: Button, count: int) -> Reader:
    return lambda fields, place: [act(ActionType.CLICK, button=button, count=count, **place.at(fields))]


def _button(type: ActionType) -> Reader:
    return lambda fields, _: [act(type, button=fields.choice("button", _BUTTONS, "left"))]


def _keys(type: ActionType) -> Reader:
    return lambda fields, _: [act(type, keys=[keys.key(fields.text("key", most=keys.MAX_KEYS * 3))])]


def _scroll(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    """pyautogui scrolls up by positive numbers."""
    del place
    dx, dy = (fields.whole(name, -_MAX_CLICKS, _MAX_CLICKS, 0) for name in ("dx", "dy"))
    return [act(ActionType.SCROLL, dx=dx, dy=-dy)]


_READERS: Mapping[str, Reader] = {
    "MOVE_TO": lambda fields, place: [act(ActionType.MOVE, **place.pair(fields).model_dump())],
    "CLICK": _click,
    "RIGHT_CLICK": _clicking("right", 1),
    "DOUBLE_CLICK": _clicking("left", 2),
    "MOUSE_DOWN": _button(ActionType.MOUSE_DOWN),
    "MOUSE_UP": _button(ActionType.MOUSE_UP),
    "DRAG_TO": lambda fields, place: [act(ActionType.DRAG, path=[place.pair(fields)])],
    "SCROLL": _scroll,
    "TYPING": lambda fields, _: [act(ActionType.TYPE, text=fields.text("text"))],
    "PRESS": _keys(ActionType.KEY),
    "KEY_DOWN": _keys(ActionType.KEY_DOWN),
    "KEY_UP": _keys(ActionType.KEY_UP),
    "HOTKEY": lambda fields, _: [act(ActionType.KEY, keys=keys.combinations(fields.texts("keys", keys.MAX_KEYS)))],
    "WAIT": lambda fields, _: [act(ActionType.WAIT, seconds=fields.number("time", 0, MAX_WAIT_S, _WAIT_S))],
}


def _with(word: str, action: DesktopAction | None = None, place: Place | None = None, **parameters: object) -> Payload:
    if action is not None and place is not None and action.x is not None and action.y is not None:
        x, y = place.words(Point(x=action.x, y=action.y))
        parameters |= {"x": x, "y": y}
    return {"action_type": word, "parameters": parameters}


def _say_key(action: DesktopAction, place: Place) -> Payload:
    del place
    names = keys.said(action.keys, keys.PYAUTOGUI)
    return _with("PRESS", key=names[0]) if len(names) == 1 else _with("HOTKEY", keys=names)


def _say_held(word: str) -> Writer:
    return lambda action, _: _with(word, key=keys.said(action.keys, keys.PYAUTOGUI)[0])


def _say_drag(action: DesktopAction, place: Place) -> Payload | None:
    if len(action.path) != 1:
        return None
    x, y = place.words(action.path[0])
    return _with("DRAG_TO", x=x, y=y)


_WRITERS: Mapping[ActionType, Writer] = {
    ActionType.MOVE: lambda a, place: _with("MOVE_TO", a, place),
    ActionType.CLICK: lambda a, place: _with("CLICK", a, place, button=a.button, num_clicks=a.count),
    ActionType.MOUSE_DOWN: lambda a, _: _with("MOUSE_DOWN", button=a.button),
    ActionType.MOUSE_UP: lambda a, _: _with("MOUSE_UP", button=a.button),
    ActionType.DRAG: _say_drag,
    ActionType.SCROLL: lambda a, _: _with("SCROLL", dx=a.dx, dy=-a.dy),
    ActionType.TYPE: lambda a, _: _with("TYPING", text=a.text),
    ActionType.KEY: _say_key,
    ActionType.KEY_DOWN: _say_held("KEY_DOWN"),
    ActionType.KEY_UP: _say_held("KEY_UP"),
    ActionType.WAIT: lambda a, _: _with("WAIT", time=a.seconds),
}
