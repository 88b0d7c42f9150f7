"""Fields of requests, checked: the host checks them too, but a wrong number given to X is refused late and far away."""

import math
from collections.abc import Mapping
from typing import Any, cast

from faults import Failed

MOST_SIDE = 4096


def whole(item: Mapping[str, Any], name: str, low: int, high: int, default: int | None = None) -> int:
    """Return a whole number of ``low`` to ``high``; lacking without a default is an error, like the rest: bad_action."""
    value = item.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Failed("bad_action", f"{name} is a whole number from {low} to {high}")
    return value


def seconds(item: Mapping[str, Any], name: str, high: float, default: float = 0.0) -> float:
    value = item.get(name, default)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or not 0 <= value <= high
    ):
        raise Failed("bad_action", f"{name} is a number of seconds up to {high}")
    return float(value)


def text(item: Mapping[str, Any], name: str, most: int, default: str = "") -> str:
    value = item.get(name, default)
    if not isinstance(value, str) or len(value) > most:
        raise Failed("bad_action", f"{name} is a text of at most {most} characters")
    return value


def names(item: Mapping[str, Any], name: str, most: int) -> list[str]:
    value = item.get(name, [])
    if not isinstance(value, list) or len(cast("list[object]", value)) > most:
        raise Failed("bad_action", f"{name} is a list of at most {most} keys")
    found = [one for one in cast("list[object]", value) if isinstance(one, str) and 0 < len(one) <= 40]
    if len(found) != len(cast("list[object]", value)):
        raise Failed("bad_action", f"{name} holds something that is no key")
    return found


def part(item: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    value = item.get(name)
    if value is not None and not isinstance(value, dict):
        raise Failed("bad_action", f"{name} is an object")
    return cast("Mapping[str, Any] | None", value)


def size(item: Mapping[str, Any], name: str) -> tuple[int, int] | None:
    found = part(item, name)
    if found is None:
        return None
    return whole(found, "width", 1, MOST_SIDE), whole(found, "height", 1, MOST_SIDE)


def point(item: Mapping[str, Any], screen: tuple[int, int]) -> tuple[int, int] | None:
    """Return x and y, or None where both are lacking. Raises out_of_bounds."""
    if item.get("x") is None and item.get("y") is None:
        return None
    x, y = whole(item, "x", -(1 << 31), 1 << 31), whole(item, "y", -(1 << 31), 1 << 31)
    if not (0 <= x < screen[0] and 0 <= y < screen[1]):
        raise Failed("out_of_bounds", f"{x},{y} is not on the screen of {screen[0]}x{screen[1]}")
    return x, y
