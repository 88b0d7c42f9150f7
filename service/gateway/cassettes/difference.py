"""Where two JSON values first differ: what a replay that goes another way tells its reader."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

_SHOWN = 200


class _Absent:
    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Difference:
    pointer: str
    """RFC 6901; empty: the values themselves."""
    recorded: str
    """Shown as JSON, around the first difference where it is long text."""
    asked: str


def first_difference(recorded: Any, asked: Any) -> Difference | None:
    """Return the first difference in the order of the recorded value; null where they are equal."""
    found = next(_differences(recorded, asked, ""), None)
    if found is None:
        return None
    pointer, before, now = found
    start = _common(before, now) if isinstance(before, str) and isinstance(now, str) else 0
    return Difference(pointer, _shown(before, start), _shown(now, start))


def _differences(a: Any, b: Any, at: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(a, dict) and isinstance(b, dict):
        yield from _in_objects(cast("dict[str, Any]", a), cast("dict[str, Any]", b), at)
    elif isinstance(a, list) and isinstance(b, list):
        yield from _in_arrays(cast("list[Any]", a), cast("list[Any]", b), at)
    elif not _same(cast("object", a), cast("object", b)):
        yield at, a, b


def _same(a: object, b: object) -> bool:
    """1, 1.0 and true are three values in JSON."""
    return type(a) is type(b) and a == b


def _in_objects(a: dict[str, Any], b: dict[str, Any], at: str) -> Iterator[tuple[str, Any, Any]]:
    for key in [*a, *(key for key in b if key not in a)]:
        place = f"{at}/{key.replace('~', '~0').replace('/', '~1')}"
        yield from _differences(a.get(key, ABSENT), b.get(key, ABSENT), place)


def _in_arrays(a: list[Any], b: list[Any], at: str) -> Iterator[tuple[str, Any, Any]]:
    for i in range(max(len(a), len(b))):
        yield from _differences(a[i] if i < len(a) else ABSENT, b[i] if i < len(b) else ABSENT, f"{at}/{i}")


def _common(a: str, b: str) -> int:
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return max(0, same - _SHOWN // 4)


def _shown(value: Any, start: int) -> str:
    if value is ABSENT:
        return "(absent)"
    if isinstance(value, str):
        piece = value[start : start + _SHOWN]
        before, after = "…" * (start > 0), "…" * (start + _SHOWN < len(value))
        return f'"{before}{piece}{after}"'
    if isinstance(value, dict | list):
        return _brief(cast("dict[str, Any] | list[Any]", value))
    return repr(value)[:_SHOWN]


def _brief(value: dict[str, Any] | list[Any]) -> str:
    if isinstance(value, list):
        return f"an array of {len(value)}"
    return f"an object with {', '.join(list(value)[:10])[:_SHOWN] or 'nothing'}"
