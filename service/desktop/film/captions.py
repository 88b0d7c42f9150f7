"""What the strip below a still says: which batch it is, when, and what was done."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

MOST_CHARS = 140
_MOST_TEXT = 40


def caption(number: int, seconds: float, actions: Sequence[Any]) -> str:
    """``seconds``: since the first batch. ``actions`` as an event ``desktop.action`` has them."""
    said = "; ".join(words(cast(Mapping[str, Any], a)) for a in actions if isinstance(a, Mapping))
    minutes, rest = divmod(max(0, int(seconds)), 60)
    whole = f"{number}   {minutes}:{rest:02}   {said or 'look'}"
    return whole if len(whole) <= MOST_CHARS else f"{whole[: MOST_CHARS - 1]}…"


def words(action: Mapping[str, Any]) -> str:
    """Return one action in words."""
    parts = [str(action.get("type", "")).replace("_", " ")]
    if action.get("type") == "click":
        parts = [*_clicking(action), *parts]
    if action.get("keys") or action.get("modifiers"):
        parts.append("+".join(str(key) for key in (*action.get("modifiers", ()), *action.get("keys", ()))))
    if action.get("dx") or action.get("dy"):
        parts.append(_way(int(action.get("dx", 0)), int(action.get("dy", 0))))
    parts += [_point(point) for point in _places(action)]
    if action.get("text"):
        parts.append(_quoted(str(action["text"])))
    if action.get("seconds"):
        parts.append(f"{action['seconds']:g} s")
    return " ".join(part for part in parts if part)


def _clicking(action: Mapping[str, Any]) -> list[str]:
    button, count = action.get("button", "left"), action.get("count", 1)
    return ["" if button == "left" else str(button), {2: "double", 3: "triple"}.get(count, "")]


def _way(dx: int, dy: int) -> str:
    across = f"{'right' if dx > 0 else 'left'} {abs(dx)}" if dx else ""
    along = f"{'down' if dy > 0 else 'up'} {abs(dy)}" if dy else ""
    return " ".join(part for part in (along, across) if part)


def _places(action: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    path = cast(Sequence[Mapping[str, Any]], action.get("path") or ())
    ends = [path[0], path[-1]] if len(path) > 1 else [*path]
    return [*([action] if "x" in action and "y" in action else []), *ends]


def _point(point: Mapping[str, Any]) -> str:
    return f"({point.get('x')}, {point.get('y')})"


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line if len(line) <= _MOST_TEXT else line[:_MOST_TEXT] + '…'}”"
