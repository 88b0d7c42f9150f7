"""Server-sent events: a parser that is fed bytes as they come, bounded."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from workstead.errors import ProtocolError

MAX_MESSAGE_BYTES = 4 << 20
"""Longest message held in memory."""


@dataclass(frozen=True, slots=True)
class Message:
    event: str
    data: str
    id: str | None
    """Last id seen up to and including this message."""


@dataclass(slots=True)
class SseParser:
    """Feed chunks cut anywhere; get whole messages. ``retry_s`` is the server's wish for reconnects, if it had one."""

    retry_s: float | None = None
    last_id: str | None = None
    _rest: bytes = b""
    _held: int = 0
    _event: str = ""
    _data: list[str] = field(default_factory=list[str])

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """Yield the messages that ``chunk`` completes. Raises ProtocolError past MAX_MESSAGE_BYTES."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for raw in lines:
            message = self._line(raw.removesuffix(b"\r").decode("utf-8", "replace"))
            if message is not None:
                yield message
        if len(self._rest) + self._held > MAX_MESSAGE_BYTES:
            raise ProtocolError(f"an event is longer than {MAX_MESSAGE_BYTES} bytes")

    def _line(self, line: str) -> Message | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._held += len(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self.last_id = value
        elif name == "retry" and value.isdecimal():
            self.retry_s = min(int(value[:9]) / 1000, 60.0)
        return None

    def _dispatch(self) -> Message | None:
        event, data = self._event, self._data
        self._event, self._data, self._held = "", [], 0
        # A message with a name and no data is dispatched too (the standard drops it): `event: end` carries none.
        return Message(event or "message", "\n".join(data), self.last_id) if data or event else None
