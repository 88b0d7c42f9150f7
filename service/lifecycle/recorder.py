"""From output frames to events and counters: pure, without clock or store, so that a takeover can be exact.

What is not committed is derivable: the streams' stored offsets (attempt row), the spool's tail and the run's counters
restore a :class:`Recorder`. Everything received is stored and acknowledged at once, but text ends at a code point: up to
three bytes of an unfinished one are held back, and the spool's tail tells a successor which.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from service.domain.events import EventType, NewEvent
from service.domain.limits import MAX_EVENTS, OUTPUT_TEXT_BYTES
from service.lifecycle.agent_lines import AgentReader, Found
from service.lifecycle.json_lines import JsonLine, LineSplitter
from service.lifecycle.raw_log import Spool
from service.lifecycle.text_pieces import pieces, whole_length
from service.sandboxes.contract import STREAMS, Frame
from service.scaffolds.contract import AgentReport

Decode = Callable[[bytes], tuple[str, bool]]
EVENT_RESERVE = 1_000
"""Of a run's events, those that output leaves to state changes."""


@dataclass(slots=True)
class Budget:
    """What a run's output may still put into events, over all its attempts."""

    text_bytes: int = OUTPUT_TEXT_BYTES
    events: int = MAX_EVENTS - EVENT_RESERVE
    exhausted: bool = False

    def take(self, size: int) -> bool:
        """Take one event of ``size`` bytes. The first refusal is final: kept text has no holes."""
        if self.exhausted or size > self.text_bytes or self.events < 1:
            self.exhausted = True
            return False
        self.text_bytes -= size
        self.events -= 1
        return True


@dataclass(slots=True)
class Batch:
    """What one transaction stores."""

    ends: dict[str, int] = field(default_factory=dict[str, int])
    """Stream → offset up to which its bytes are stored once this is committed."""
    held: dict[str, bytes] = field(default_factory=dict[str, bytes])
    raw: list[tuple[str, int, bytes]] = field(default_factory=list[tuple[str, int, bytes]])
    events: list[NewEvent] = field(default_factory=list[NewEvent])
    text_bytes: int = 0
    turns: int = 0
    tool_calls: int = 0
    doing: str | None = None
    truncated: bool = False


@dataclass(slots=True)
class _Stream:
    name: str
    stored: int = 0
    pending: bytearray = field(default_factory=bytearray)
    held: bytes = b""
    """Stored, but not in an event yet."""
    lines: LineSplitter = field(default_factory=LineSplitter)
    kept: int = 0
    marked: bool = False

    @property
    def received(self) -> int:
        return self.stored + len(self.pending)


class Recorder:
    """One attempt's output. Feed frames, take a batch, commit it; never two batches at once."""

    def __init__(
        self, decode: Decode, parser: Literal["text", "jsonl"], budget: Budget, reader: AgentReader | None = None
    ) -> None:
        """``reader``: the scaffold's own, which then takes the place of ``parser``."""
        self._decode = decode
        self._parser = parser
        self._reader = reader
        self._budget = budget
        self._streams = {name: _Stream(name) for name in STREAMS}

    def resume(self, offsets: Mapping[str, int], spool: Spool) -> None:
        """Continue where an earlier process stopped."""
        for name, stream in self._streams.items():
            stream.stored = stream.kept = offsets.get(name, 0)
            tail, whole = spool.tail(name, stream.stored)
            stream.held = tail[-3:][whole_length(tail[-3:]) :]
            if self._parser == "jsonl" and stream.stored:
                stream.lines = LineSplitter.resumed(tail, from_start=whole)
        if self._reader is not None:
            self._reader.resume(offsets, spool)

    def report(self) -> AgentReport | None:
        """Return what the program said of its ending, by the scaffold's reader."""
        return None if self._reader is None else self._reader.report()

    @property
    def pending_bytes(self) -> int:
        return sum(len(s.pending) for s in self._streams.values())

    @property
    def exhausted(self) -> bool:
        return self._budget.exhausted

    def stored(self) -> dict[str, int]:
        return {name: s.stored for name, s in self._streams.items()}

    def feed(self, frame: Frame) -> None:
        """Take a frame; bytes that came before are dropped. Raises ValueError on a gap or an unknown stream."""
        stream = self._streams.get(frame.stream)
        if stream is None or frame.offset > stream.received:
            raise ValueError(f"frame of {frame.stream!r} at {frame.offset} does not follow what was received")
        stream.pending += memoryview(frame.data)[stream.received - frame.offset :]

    def batch(self, now: datetime, *, final: bool = False) -> Batch:
        """Return everything that can be stored now; ``final`` includes an unfinished code point."""
        batch = Batch()
        for stream in self._streams.values():
            if stream.pending or (final and stream.held):
                self._add(batch, stream, now, final=final)
        if final and self._reader is not None:
            self._add_found(batch, self._reader.finish(), now)
        return batch

    def commit(self, batch: Batch) -> None:
        """Forget what is stored now."""
        for name, end in batch.ends.items():
            stream = self._streams[name]
            del stream.pending[: end - stream.stored]
            stream.stored = end
            stream.held = batch.held[name]

    def _add(self, batch: Batch, stream: _Stream, now: datetime, *, final: bool) -> None:
        data = bytes(stream.pending)
        batch.raw.append((stream.name, stream.stored, data))
        batch.ends[stream.name] = stream.stored + len(data)
        text = stream.held + data
        whole = len(text) if final or self.exhausted else whole_length(text)
        batch.held[stream.name] = text[whole:]
        for offset, piece in pieces(text[:whole], stream.stored - len(stream.held)) if not self.exhausted else ():
            if not self._budget.take(len(piece)):
                break
            self._add_text(batch, stream, offset, piece, now)
        if self._reader is not None:
            self._add_found(batch, self._reader.feed(stream.name, data, stream.stored), now)
        elif self._parser == "jsonl" and not self.exhausted:
            self._add_lines(batch, stream, data, now)
        if self.exhausted:
            self._mark(batch, stream, now)

    def _add_text(self, batch: Batch, stream: _Stream, offset: int, piece: bytes, now: datetime) -> None:
        text, lossy = self._decode(piece)
        payload = {"stream": stream.name, "offset": offset, "bytes": len(piece), "text": text, "lossy": lossy}
        batch.events.append(NewEvent(EventType.OUTPUT, payload, stream.name, offset, now))
        batch.text_bytes += len(piece)
        stream.kept = offset + len(piece)

    def _add_lines(self, batch: Batch, stream: _Stream, data: bytes, now: datetime) -> None:
        for line in stream.lines.feed(data, stream.stored):
            if not self._budget.take(line.size):
                return
            kind = _count(batch, line)
            batch.events.append(NewEvent(kind, line.value, f"{stream.name}.json", line.offset, now))
            batch.text_bytes += line.size

    def _add_found(self, batch: Batch, found: Iterable[Found], now: datetime) -> None:
        for one in found:  # to the end, also past the budget: the reader's report needs every line
            if self.exhausted or not self._budget.take(one.size):
                continue
            batch.events.append(one.event(now))
            batch.text_bytes += one.size
            _tally(batch, one.type, one.payload)

    def _mark(self, batch: Batch, stream: _Stream, now: datetime) -> None:
        if not stream.marked:
            batch.truncated = stream.marked = True
            payload: dict[str, Any] = {"stream": stream.name, "kept_bytes": stream.kept}
            batch.events.append(NewEvent(EventType.OUTPUT_TRUNCATED, payload, f"{stream.name}.truncated", 0, now))


def _tally(batch: Batch, kind: str, payload: Mapping[str, Any]) -> None:
    if kind == EventType.TOOL_CALL:
        batch.tool_calls += 1
        name = payload.get("name")
        batch.doing = name[:80] if isinstance(name, str) else None
    elif kind == EventType.AGENT_MESSAGE:
        batch.turns += 1


def _count(batch: Batch, line: JsonLine) -> EventType:
    kind = line.value.get("type")
    if kind == "tool_call":
        batch.tool_calls += 1
        name = line.value.get("name")
        batch.doing = name[:80] if isinstance(name, str) else None
        return EventType.TOOL_CALL
    if kind == "message":
        batch.turns += 1
    return EventType.AGENT_MESSAGE
