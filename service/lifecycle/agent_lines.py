"""From a program's output lines to what they mean, by the scaffold's own reader.

The reader keeps state (what was said so far), so a successor feeds it the whole spool again and drops what comes out:
those events are stored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from service.domain.events import NewEvent
from service.lifecycle.raw_log import Spool
from service.sandboxes.contract import STREAMS
from service.scaffolds.contract import AgentReport, LineParser

MAX_LINE_BYTES = 16 << 20
"""A longer line is raw output only: some programs print a picture as one line."""
EVENTS_PER_LINE = 64
_CHUNK = 1 << 20


@dataclass(slots=True)
class _Carry:
    data: bytearray = field(default_factory=bytearray)
    skipping: bool = False
    start: int = 0
    """Offset of the unfinished line's first byte."""


@dataclass(frozen=True, slots=True)
class Found:
    type: str
    payload: dict[str, Any]
    source: str
    source_offset: int
    size: int
    """Bytes of the line, once per line: what it takes of the run's text budget."""

    def event(self, now: Any) -> NewEvent:
        return NewEvent(self.type, self.payload, self.source, self.source_offset, now)


class AgentReader:
    """Cuts streams into lines and has them read. Holds at most one unfinished line per stream."""

    def __init__(self, parser: LineParser) -> None:
        self._parser = parser
        self._carry = {name: _Carry() for name in STREAMS}

    def resume(self, offsets: Mapping[str, int], spool: Spool) -> None:
        """Read again everything that an earlier process stored."""
        for stream in STREAMS:
            for offset, data in spool.chunks(stream, offsets.get(stream, 0), _CHUNK):
                for _ in self.feed(stream, data, offset):
                    pass

    def feed(self, stream: str, data: bytes, offset: int) -> Iterator[Found]:
        """Take the bytes at ``offset``, which follow those taken before."""
        carry, at = self._carry[stream], 0
        while (end := data.find(b"\n", at)) >= 0:
            self._take(carry, data[at:end])
            if not carry.skipping:
                yield from self._read(stream, carry)
            carry.data.clear()
            carry.skipping = False
            at = end + 1
            carry.start = offset + at
        self._take(carry, data[at:])

    def finish(self) -> Iterator[Found]:
        """Read what stands without a newline at the end."""
        for stream, carry in self._carry.items():
            if carry.data and not carry.skipping:
                yield from self._read(stream, carry)
                carry.data.clear()

    def report(self) -> AgentReport:
        return self._parser.report()

    def _take(self, carry: _Carry, part: bytes) -> None:
        if carry.skipping or len(carry.data) + len(part) > MAX_LINE_BYTES:
            carry.data.clear()
            carry.skipping = True
        else:
            carry.data += part

    def _read(self, stream: str, carry: _Carry) -> Iterator[Found]:
        line = bytes(carry.data).removesuffix(b"\r")
        said = self._parser.line(stream, line)
        for i, one in enumerate(said[:EVENTS_PER_LINE]):
            size = len(line) if i == 0 else 0
            yield Found(one.type, dict(one.payload), f"{stream}.agent", carry.start * EVENTS_PER_LINE + i, size)
