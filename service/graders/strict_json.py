"""JSON without the reader's liberties: no duplicate keys, NaN or infinity, no bottomless nesting, one object on top."""

import json
import math
from typing import Any, BinaryIO, cast

MAX_BYTES = 1 << 20
MAX_DEPTH = 32


class NotUsable(ValueError):
    """The text is not such an object; the message says why and quotes nothing of it."""


def read_object(stream: BinaryIO, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Read at most ``max_bytes``. Raises NotUsable."""
    data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise NotUsable(f"larger than {max_bytes} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotUsable("not UTF-8 text") from None
    return parse_object(text)


def parse_object(text: str) -> dict[str, Any]:
    """Read a text whose length the caller has bounded. Raises NotUsable."""
    try:
        value = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float)
    except json.JSONDecodeError as error:
        raise NotUsable(f"not JSON (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise NotUsable("nested too deeply") from None
    except ValueError as error:
        # Also Python's own refusal of integers of thousands of digits, whose message quotes only their length.
        raise error if isinstance(error, NotUsable) else NotUsable("a number is too long") from None
    if not isinstance(value, dict):
        raise NotUsable("not a JSON object")
    _check_depth(value)
    return cast(dict[str, Any], value)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise NotUsable("a key appears twice")
    return result


def _constant(name: str) -> Any:
    raise NotUsable(f"{name} is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotUsable("a number is too large")
    return value


def _check_depth(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise NotUsable("nested too deeply")


def _children(item: Any) -> list[Any]:
    if isinstance(item, dict):
        return list(cast(dict[str, Any], item).values())
    return cast(list[Any], item) if isinstance(item, list) else []
