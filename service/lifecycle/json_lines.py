"""Complete lines that are JSON objects, out of a byte stream; whatever is not stays output only."""

import json
import math
from dataclasses import dataclass, field
from typing import Any, cast

from service.domain.limits import MIB

MAX_LINE_BYTES = MIB
MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class JsonLine:
    offset: int
    """Of the line's first byte."""
    size: int
    value: dict[str, Any]


@dataclass(slots=True)
class LineSplitter:
    """Holds at most 1 MiB: the unfinished line. A longer line is skipped up to its end."""

    carry: bytearray = field(default_factory=bytearray)
    skipping: bool = False

    @classmethod
    def resumed(cls, tail: bytes, *, from_start: bool) -> "LineSplitter":
        """Return the state after a stream that ends in ``tail``: at least its last 1 MiB, or all of it (``from_start``)."""
        _, newline, rest = tail.rpartition(b"\n")
        whole = bool(newline) or from_start
        if whole and len(rest) <= MAX_LINE_BYTES:
            return cls(bytearray(rest))
        return cls(skipping=True)

    def feed(self, data: bytes, offset: int) -> list[JsonLine]:
        """Take the bytes at ``offset``, which follow those taken before."""
        found: list[JsonLine] = []
        at = 0
        while (end := data.find(b"\n", at)) >= 0:
            self._take(data[at:end])
            line, start = bytes(self.carry), offset + end - len(self.carry)
            if not self.skipping and (value := parse_object(line)) is not None:
                found.append(JsonLine(start, len(line), value))
            self.carry.clear()
            self.skipping = False
            at = end + 1
        self._take(data[at:])
        return found

    def _take(self, part: bytes) -> None:
        if self.skipping or len(self.carry) + len(part) > MAX_LINE_BYTES:
            self.carry.clear()
            self.skipping = True
        else:
            self.carry += part


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
