"""The one meter of all dialects: finds events or a whole JSON body in the bytes and lets a dialect's tally count."""

import json
from typing import Protocol

from service.gateway.dialects.contract import Answer
from service.gateway.dialects.decoding import Decoder
from service.gateway.dialects.sse import SseSplitter

READ_LIMIT = 8 << 20
"""Bytes of one event, or of a body without a stream, that are held to be read."""
_BEFORE = b" \t\r\n\xef\xbb\xbf"


class Tally(Protocol):
    """What a dialect counts."""

    def event(self, name: bytes, data: bytes) -> None:
        """Take one event of a stream."""
        ...

    def body(self, value: object) -> None:
        """Take a whole answer, parsed."""
        ...

    def started(self) -> bool:
        """Tell whether anything of the model's output has passed in a stream."""
        ...

    def answer(self) -> Answer: ...


def parse(data: bytes) -> object:
    """Return the JSON value, or None for what is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


class PassingMeter:
    """See ``contract.Meter``. The body's first character decides between JSON and events, never the header: a provider's
    errors come as JSON inside a request for a stream, and proxies mislabel both."""

    def __init__(self, tally: Tally, content_encoding: str = "", limit: int = READ_LIMIT) -> None:
        self._tally = tally
        self._decoder = Decoder(content_encoding)
        self._limit = limit
        self._events = SseSplitter(limit)
        self._kind = ""
        self._whole = bytearray()
        self._answer: Answer | None = None

    def feed(self, data: bytes) -> None:
        if self._answer is None:
            for piece in self._decoder.feed(data):
                self._take(piece)

    def first_token_seen(self) -> bool:
        return self._kind in {"json", "too long"} or self._tally.started()

    def answer(self) -> Answer:
        if self._answer is None:
            if self._kind == "json":
                self._tally.body(parse(bytes(self._whole)))
                self._whole.clear()
            elif self._kind:
                self._count(self._events.end())
            self._answer = self._tally.answer() if self._kind != "too long" else Answer(usage=None)
        return self._answer

    def _take(self, data: bytes) -> None:
        if not self._kind and (start := data.lstrip(_BEFORE)):
            self._kind = "json" if start.startswith((b"{", b"[")) else "events"
        if self._kind == "events":
            self._count(self._events.feed(data))
        elif self._kind == "json":
            self._hold(data)

    def _hold(self, data: bytes) -> None:
        if len(self._whole) + len(data) > self._limit:
            self._kind = "too long"
            self._whole.clear()
        else:
            self._whole += data

    def _count(self, events: list[tuple[bytes, bytes]]) -> None:
        for name, data in events:
            self._tally.event(name, data)
