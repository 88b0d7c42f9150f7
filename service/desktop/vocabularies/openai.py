"""OpenAI's computer tools: single actions (``computer_use_preview``) and batches (``computer``)."""

from collections.abc import Mapping, Sequence

from service.desktop.vocabularies import keys
from service.desktop.vocabularies.adapter import Adapter, Payload, Reader, Writer
from service.desktop.vocabularies.contract import Reading
from service.desktop.vocabularies.fields import Fields, act, bad
from service.desktop.vocabularies.place import Place
from service.desktop.vocabularies.wheel import CLICK_PIXELS, clicks
from service.domain.desktop import (
    MAX_ACTIONS,
    ActionType,
    Button,
    CoordinateSpace,
    DesktopAction,
    Point,
    SafetyCheck,
    Size,
)

PREVIEW = "openai.computer_use_preview"
COMPUTER = "openai.computer"
_BUTTONS: Mapping[str, Button] = {
    "left": "left",
    "right": "right",
    "wheel": "middle",
    "back": "back",
    "forward": "forward",
}
_WAIT_S = 2.0
"""Of ``wait``, which has no duration."""
_MAX_PIXELS = 100 * CLICK_PIXELS
_MAX_CHECKS = 16


class OpenAi(Adapter):
    """Payload: ``{"actions": […]}`` or ``{"action": {…}}``, read in both versions; a whole ``computer_call`` will do."""

    def read(self, payload: Payload, space: CoordinateSpace, screen: Size) -> Reading:
        place = Place(space, screen)
        actions = [action for fields in _given(payload) for action in self._one(fields, place)]
        return Reading(actions, _checks(Fields(payload, "computer")))

    def _one(self, fields: Fields, place: Place) -> Sequence[DesktopAction]:
        word = fields.text("type", most=400)
        if word not in _READERS:
            raise self.unknown(word, _READERS)
        return self.marked(_READERS[word](Fields(fields.values, word), place), fields.values)

    def say(self, action: DesktopAction, place: Place) -> Payload | None:
        writer = _WRITERS.get(action.type)
        word = writer(action, place) if writer is not None else None
        if word is None:
            return None
        return {"action": word} if self.name == PREVIEW else {"actions": [word]}


def _given(payload: Payload) -> Sequence[Fields]:
    fields = Fields(payload, "computer")
    if fields.has("actions"):
        return fields.objects("actions", MAX_ACTIONS)
    if fields.has("action"):
        return [fields.inner("action")]
    raise bad("a computer call has an action, or actions")


def _checks(fields: Fields) -> list[SafetyCheck]:
    if not fields.has("pending_safety_checks"):
        return []
    return [
        SafetyCheck(
            id=check.text("id", most=200), code=check.text("code", "", 200), message=check.text("message", "", 4000)
        )
        for check in fields.objects("pending_safety_checks", _MAX_CHECKS)
    ]


def _held(fields: Fields) -> list[str]:
    return keys.combinations(words) if fields.has("keys") and (words := fields.texts("keys", keys.MAX_KEYS)) else []


def _clicking(fields: Fields, place: Place, button: Button, count: int) -> Sequence[DesktopAction]:
    held = _held(fields)
    return [act(ActionType.CLICK, button=button, count=count, modifiers=held, **place.pair(fields).model_dump())]


def _drag(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    path = [place.pair(point) for point in fields.objects("path", 256)]
    return [act(ActionType.DRAG, path=path, modifiers=_held(fields))]


def _keypress(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    del place
    return [act(ActionType.KEY, keys=keys.combinations(fields.texts("keys", keys.MAX_KEYS)))]


def _scroll(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    dx, dy = (clicks(fields.number(name, -_MAX_PIXELS, _MAX_PIXELS, 0)) for name in ("scroll_x", "scroll_y"))
    return [act(ActionType.SCROLL, dx=dx, dy=dy, modifiers=_held(fields), **place.at(fields))]


def _move(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    return [act(ActionType.MOVE, modifiers=_held(fields), **place.pair(fields).model_dump())]


_READERS: Mapping[str, Reader] = {
    "click": lambda fields, place: _clicking(fields, place, fields.choice("button", _BUTTONS, "left"), 1),
    "double_click": lambda fields, place: _clicking(fields, place, "left", 2),
    "drag": _drag,
    "keypress": _keypress,
    "move": _move,
    "screenshot": lambda _, __: [act(ActionType.SCREENSHOT)],
    "scroll": _scroll,
    "type": lambda fields, _: [act(ActionType.TYPE, text=fields.text("text"))],
    "wait": lambda _, __: [act(ActionType.WAIT, seconds=_WAIT_S)],
}


def _with(action: DesktopAction, place: Place, **words: object) -> Payload | None:
    if action.x is None or action.y is None:
        return None
    x, y = place.words(Point(x=action.x, y=action.y))
    return {**words, "x": x, "y": y, **_said_held(action)}


def _said_held(action: DesktopAction) -> Payload:
    return {"keys": keys.said(action.modifiers, keys.OPENAI)} if action.modifiers else {}


def _say_click(action: DesktopAction, place: Place) -> Payload | None:
    if action.count > 1:
        return _with(action, place, type="double_click")
    word = next(word for word, button in _BUTTONS.items() if button == action.button)
    return _with(action, place, type="click", button=word)


def _say_drag(action: DesktopAction, place: Place) -> Payload:
    points = (place.words(point) for point in action.path)
    return {"type": "drag", "path": [{"x": x, "y": y} for x, y in points], **_said_held(action)}


def _say_scroll(action: DesktopAction, place: Place) -> Payload | None:
    return _with(action, place, type="scroll", scroll_x=action.dx * CLICK_PIXELS, scroll_y=action.dy * CLICK_PIXELS)


_WRITERS: Mapping[ActionType, Writer] = {
    ActionType.CLICK: _say_click,
    ActionType.DRAG: _say_drag,
    ActionType.KEY: lambda a, _: {"type": "keypress", "keys": keys.said(a.keys, keys.OPENAI)},
    ActionType.MOVE: lambda a, place: _with(a, place, type="move"),
    ActionType.SCREENSHOT: lambda _, __: {"type": "screenshot"},
    ActionType.SCROLL: _say_scroll,
    ActionType.TYPE: lambda a, _: {"type": "type", "text": a.text},
    ActionType.WAIT: lambda _, __: {"type": "wait"},
}
