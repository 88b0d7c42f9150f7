"""Complete lines that are JSON objects, out of a byte stream; whatever is not stays output only."""

from dataclasses import dataclass, field
from typing import Any

from service.domain.json_objects import parse_object
from service.domain.limits import MIB

MAX_LINE_BYTES = MIB


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
