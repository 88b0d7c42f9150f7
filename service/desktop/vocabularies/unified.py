"""The unified model as a tool of its own, for any model that calls functions: ``workstead.unified``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.desktop.vocabularies import keys, sizes
from service.desktop.vocabularies.adapter import Adapter, Payload
from service.desktop.vocabularies.contract import Reading
from service.desktop.vocabularies.fields import Fields, act
from service.desktop.vocabularies.place import Place
from service.domain.desktop import (
    MAX_ACTIONS,
    MAX_CLIPBOARD,
    MAX_TEXT,
    MAX_WAIT_S,
    ActionType,
    CoordinateSpace,
    DesktopAction,
    Point,
    Region,
    Size,
)

TYPES = [str(type) for type in ActionType if type is not ActionType.RESIZE]
"""Resizing would make a picture that the model was sent another one than it aims at."""
_BUTTONS = {name: name for name in ("left", "middle", "right", "back", "forward")}
_MAX_CLICKS = 100
_PLACES = frozenset({"x", "y", "path", "region", "size"})


class Unified(Adapter):
    """Payload: ``{"actions": [{"type": …}, …]}``, or one action; fields as of a ``DesktopAction``."""

    def image_size(self, screen: Size, model: str | None) -> Size:
        return sizes.image_size(screen, model)

    def read(self, payload: Payload, space: CoordinateSpace, screen: Size) -> Reading:
        whole = Fields(payload, "computer")
        given = whole.objects("actions", MAX_ACTIONS) if whole.has("actions") else [whole]
        place = Place(space, screen)
        return Reading([action for fields in given for action in self._one(fields, place)])

    def _one(self, fields: Fields, place: Place) -> Sequence[DesktopAction]:
        word = fields.text("type", most=400)
        if word not in TYPES:
            raise self.unknown(word, TYPES)
        named = Fields(fields.values, word)
        taken = {name: take(named) for name, take in _TAKEN.items() if named.has(name)}
        return self.marked([act(ActionType(word), **taken, **_places(named, place))], fields.values)

    def say(self, action: DesktopAction, place: Place) -> Payload | None:
        words = action.model_dump(mode="json", exclude_defaults=True, exclude={"raw", *_PLACES})
        return {"actions": [{**words, **_said_places(action, place)}]}


_TAKEN: Mapping[str, Callable[[Fields], Any]] = {
    "button": lambda fields: fields.choice("button", _BUTTONS),
    "count": lambda fields: fields.whole("count", 1, 3),
    "modifiers": lambda fields: keys.taken(fields, "modifiers") if fields.values["modifiers"] else [],
    "dx": lambda fields: fields.whole("dx", -_MAX_CLICKS, _MAX_CLICKS),
    "dy": lambda fields: fields.whole("dy", -_MAX_CLICKS, _MAX_CLICKS),
    "keys": lambda fields: keys.taken(fields, "keys"),
    "repeat": lambda fields: fields.whole("repeat", 1, _MAX_CLICKS),
    "seconds": lambda fields: fields.number("seconds", 0, MAX_WAIT_S),
    "text": lambda fields: fields.text("text", most=MAX_CLIPBOARD),
    "intent": lambda fields: fields.text("intent", most=MAX_TEXT)[:2000],
}


def _places(fields: Fields, place: Place) -> dict[str, Any]:
    places: dict[str, Any] = place.at(fields)
    if fields.has("path"):
        places["path"] = [place.pair(point) for point in fields.objects("path", 256)]
    if fields.has("region"):
        corners = fields.inner("region")
        places["region"] = place.region([corners.number(name, *_ANY) for name in ("x0", "y0", "x1", "y1")])
    if fields.has("size"):
        size = fields.inner("size")
        places["size"] = Size(width=size.whole("width", 1, 4096), height=size.whole("height", 1, 4096))
    return places


_ANY = (float("-inf"), float("inf"))


def _said_places(action: DesktopAction, place: Place) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if action.x is not None and action.y is not None:
        said["x"], said["y"] = place.words(Point(x=action.x, y=action.y))
    if action.path:
        said["path"] = [dict(zip("xy", place.words(point), strict=True)) for point in action.path]
    if action.region is not None:
        said["region"] = dict(zip(Region.model_fields, place.corners(action.region), strict=True))
    if action.size is not None:
        said["size"] = action.size.model_dump()
    return said


@dataclass(frozen=True, slots=True)
class FunctionTool:
    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of an object."""


def function_tools(image: Size) -> Sequence[FunctionTool]:
    """Return the plain tool-calling form, for a model that is sent pictures of this size."""
    description = (
        "Use the computer: its screen, mouse and keyboard. The actions are done in order; the first that fails ends the"
        f" batch, and a picture of the screen follows. Coordinates are pixels of that picture, which is {image.width}"
        f" wide and {image.height} high, from its upper left corner. Look at the picture before you aim at something;"
        " wait for programs to start. Several actions at once save time where you need not see what comes of each."
    )
    return [FunctionTool("computer", description, _schema(image))]


def _schema(image: Size) -> dict[str, Any]:
    actions = {"type": "array", "minItems": 1, "maxItems": MAX_ACTIONS, "items": _action(image)}
    return {"type": "object", "properties": {"actions": actions}, "required": ["actions"]}


def _action(image: Size) -> dict[str, Any]:
    point = {"x": _whole(0, image.width - 1), "y": _whole(0, image.height - 1)}
    edges = {"x0": image.width, "y0": image.height, "x1": image.width, "y1": image.height}
    properties: dict[str, Any] = {
        "type": {"type": "string", "enum": TYPES, "description": _TYPES_SAID},
        **point,
        "button": {"type": "string", "enum": list(_BUTTONS), "description": "Of the mouse. Default: left."},
        "count": _whole(1, 3, "Clicks: 2 is a double click. Default: 1."),
        "modifiers": _keys("Keys held meanwhile, such as ctrl or shift."),
        "path": {"type": "array", "maxItems": 256, "items": _object(point), "description": "Where a drag leads."},
        "dx": _whole(-_MAX_CLICKS, _MAX_CLICKS, "Clicks of the wheel to the right; to the left if negative."),
        "dy": _whole(-_MAX_CLICKS, _MAX_CLICKS, "Clicks of the wheel downwards; upwards if negative."),
        "keys": _keys('Pressed together: ["ctrl", "s"], ["Return"], ["Page_Down"].'),
        "repeat": _whole(1, _MAX_CLICKS, "How often the keys are pressed. Default: 1."),
        "seconds": {"type": "number", "minimum": 0, "maximum": MAX_WAIT_S},
        "text": {"type": "string"},
        "region": _object({name: _whole(0, most) for name, most in edges.items()}),
    }
    return {"type": "object", "properties": properties, "required": ["type"]}


_TYPES_SAID = (
    "click (x, y, button, count, modifiers); move (x, y); drag (path, button, modifiers); mouse_down, mouse_up (x, y,"
    " button); scroll (dx, dy, x, y); key (keys, repeat); key_down, key_up (keys); hold_key (keys, seconds); type (text);"
    " wait (seconds); screenshot; zoom (region): that part of the screen, larger; navigate (text): open this address in"
    " the browser; clipboard_read; clipboard_write (text); windows: the list of windows; cursor_position; release_all."
)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _whole(low: int, high: int, description: str = "") -> dict[str, Any]:
    said = {"description": description} if description else {}
    return {"type": "integer", "minimum": low, "maximum": high, **said}


def _keys(description: str) -> dict[str, Any]:
    return {"type": "array", "maxItems": keys.MAX_KEYS, "items": {"type": "string"}, "description": description}
