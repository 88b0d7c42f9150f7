"""Arguments of a vocabulary that is data: where they are in a payload, and what of an action they are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from service.desktop.vocabularies import keys
from service.desktop.vocabularies.adapter import Payload
from service.desktop.vocabularies.document import Take
from service.desktop.vocabularies.fields import Fields, bad
from service.desktop.vocabularies.place import Place
from service.desktop.vocabularies.wheel import WAYS, way_of
from service.domain.desktop import MAX_CLIPBOARD, DesktopAction, Point

_BUTTONS = {name: name for name in ("left", "middle", "right", "back", "forward")}
_MOST = 1_000_000
_MAX_POINTS = 256
_COORDINATES = frozenset({"x", "y"})
_WHOLE = frozenset({"count", "repeat", "dx", "dy", "amount"})


def holder(payload: Payload, where: str) -> tuple[Payload, str]:
    """Return the object that has the last of the names, and that name. Raises Invalid ``bad_action``."""
    *outer, name = where.split(".")
    for part in outer:
        found = payload.get(part)
        if found is not None and not isinstance(found, Mapping):
            raise bad(f"{part} must be an object")
        payload = cast(Payload, found or {})
    return payload, name


def at(payload: Payload, where: str) -> Any:
    inner, name = holder(payload, where)
    return inner.get(name)


def placed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with each value where its names lead."""
    whole: dict[str, Any] = {}
    for where, value in values.items():
        inner = whole
        *outer, name = where.split(".")
        for part in outer:
            inner = inner.setdefault(part, {})
        inner[name] = value
    return whole


def read(takes: Sequence[Take], arguments: Fields, place: Place) -> dict[str, Any]:
    """Return the fields of the action. Raises Invalid ``bad_action``."""
    found: dict[str, Any] = {}
    for take in takes:
        inner, name = holder(arguments.values, take.argument)
        fields = Fields({name: take.default, **{k: v for k, v in inner.items() if v is not None}}, arguments.of)
        if fields.has(name) or not take.optional:
            found[take.to] = _READ[take.to](fields, name, take, place)
    return _together(found, place)


def _together(found: dict[str, Any], place: Place) -> dict[str, Any]:
    """Join what two arguments say between them."""
    if _COORDINATES & found.keys():
        if len(_COORDINATES & found.keys()) < len(_COORDINATES):
            raise bad("x and y are given together")
        found |= place.point(found["x"], found["y"]).model_dump()
    if "point" in found:
        found |= found.pop("point").model_dump()
    path = [found.pop(end) for end in ("start", "end") if end in found]
    if path:
        found["path"] = path
    if "way" in found or "amount" in found:
        right, down = found.pop("way", WAYS["down"])
        amount = found.pop("amount", 1)
        found |= {"dx": right * amount, "dy": down * amount}
    return found


def _number(fields: Fields, name: str, take: Take, place: Place) -> float:
    del place
    value = fields.number(name, -_MOST, _MOST)
    if take.to in _COORDINATES:
        return value
    value *= take.scale
    # A distance that is less than a click of the wheel is one, in its direction.
    return (round(value) or (value > 0) - (value < 0)) if take.to in _WHOLE else value


def _point(fields: Fields, name: str, take: Take, place: Place) -> Point:
    del take
    if isinstance(fields.values.get(name), Mapping):
        return place.pair(fields.inner(name))
    x, y = fields.numbers(name, 2)
    return place.point(x, y)


def _path(fields: Fields, name: str, take: Take, place: Place) -> list[Point]:
    values = fields.values.get(name)
    if not isinstance(values, list) or len(cast(list[Any], values)) > _MAX_POINTS:
        raise bad(f"{name} must be a list of at most {_MAX_POINTS} points")
    return [_point(Fields({name: value}, fields.of), name, take, place) for value in cast(list[Any], values)]


def _keys(fields: Fields, name: str, take: Take, place: Place) -> list[str]:
    del place
    value = fields.values.get(name)
    given = keys.taken(fields, name) if value or take.to == "keys" else []
    ours = {word.lower(): our for word, our in take.words.items()}
    return keys.together([ours.get(key.lower(), key) for key in given])


def _chosen(options: Mapping[str, Any]) -> Callable[[Fields, str, Take, Place], Any]:
    def choose(fields: Fields, name: str, take: Take, place: Place) -> Any:
        del place
        ours = {their.lower(): options[our] for their, our in take.words.items() if our in options}
        return fields.choice(name, ours or options)

    return choose


def _text(fields: Fields, name: str, take: Take, place: Place) -> str:
    del place
    return fields.text(name, most=MAX_CLIPBOARD if take.to == "text" else 2000)


_READ: Mapping[str, Callable[[Fields, str, Take, Place], Any]] = {
    **dict.fromkeys(("x", "y", "count", "seconds", "repeat", "dx", "dy", "amount"), _number),
    **dict.fromkeys(("point", "start", "end"), _point),
    **dict.fromkeys(("keys", "modifiers"), _keys),
    **dict.fromkeys(("text", "intent"), _text),
    "path": _path,
    "region": lambda fields, name, _, place: place.region(fields.numbers(name, 4)),
    "button": _chosen(_BUTTONS),
    "way": _chosen(WAYS),
}


def said(takes: Sequence[Take], action: DesktopAction, place: Place) -> dict[str, Any] | None:
    """Return the arguments by where they are; null: the action lacks one that must be there."""
    words: dict[str, Any] = {}
    for take in takes:
        value = _said(take, action, place)
        if value is None and not take.optional and take.default is None:
            return None
        if value is not None and not (take.optional and value in ([], "")):
            words[take.argument] = value
    return words


def _said(take: Take, action: DesktopAction, place: Place) -> Any:
    match take.to:
        case "x" | "y" | "point":
            return _said_point(take, action, place)
        case "start" | "end":
            wanted = len(action.path) == 2 or (take.to == "end" and len(action.path) == 1)
            return _shaped(take, place, action.path[-1 if take.to == "end" else 0]) if wanted else None
        case "path":
            return [_shaped(take, place, point) for point in action.path]
        case "region":
            return None if action.region is None else place.corners(action.region)
        case "way":
            way = way_of(action)
            return None if way is None else _theirs(take, way)
        case "amount":
            return _unscaled(take, abs(action.dx or action.dy))
        case "button":
            return _theirs(take, action.button)
        case "keys" | "modifiers":
            return [_theirs(take, name) for name in getattr(action, take.to)]
        case "text" | "intent":
            return str(getattr(action, take.to))
        case _:
            return _unscaled(take, getattr(action, take.to))


def _said_point(take: Take, action: DesktopAction, place: Place) -> Any:
    if action.x is None or action.y is None:
        return None
    point = Point(x=action.x, y=action.y)
    if take.to == "point":
        return _shaped(take, place, point)
    return place.words(point)[0 if take.to == "x" else 1]


def _shaped(take: Take, place: Place, point: Point) -> Any:
    x, y = place.words(point)
    return [x, y] if take.shape == "list" else {"x": x, "y": y}


def _theirs(take: Take, our: str) -> str:
    return next((their for their, word in take.words.items() if word == our), our)


def _unscaled(take: Take, value: float) -> int | float:
    theirs = value / take.scale
    return round(theirs) if abs(theirs - round(theirs)) < 1e-9 else theirs
