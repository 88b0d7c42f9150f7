"""JSON of untrusted origin, as far as a database can hold it."""

import json
import math
from typing import Any, cast

MAX_DEPTH = 32


def parse_object(line: bytes) -> dict[str, Any] | None:
    """Return the line's JSON object if a database can hold it: finite numbers, bounded depth; else None."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        value = json.loads(line, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) and _shallow(cast(Any, value)) else None


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def _shallow(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return True
    return False


def _children(item: Any) -> list[Any]:
    if isinstance(item, dict):
        return list(cast(dict[str, Any], item).values())
    return cast(list[Any], item) if isinstance(item, list) else []
