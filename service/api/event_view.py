"""Events as clients see them, in JSON pages and on streams: the same object."""

import json
from typing import Any

from service.api.rendering import Timestamp, View, rfc3339
from service.domain.events import Event, EventType

BULKY = frozenset({EventType.OUTPUT, EventType.RESOURCES})
"""What ``detail=coarse`` leaves out."""
COARSE = tuple(t.value for t in EventType if t not in BULKY)
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


class RunEvent(View):
    """One numbered fact about a run. Readers ignore types and fields that they do not know."""

    run_id: str
    seq: int
    """Dense per run across its attempts; the ``id`` on streams."""
    attempt: int
    """0 before the first one."""
    ts: Timestamp
    type: str
    v: int
    payload: dict[str, Any]


class EventPage(View):
    data: list[RunEvent]
    next: str | None
    """Relative URL of the next page; null when this page reached the last event."""
    next_after: int
    """``after`` to go on from, also when ``next`` is null."""
    last_seq: int
    finished: bool
    """True once no further event follows."""


def event_view(event: Event) -> RunEvent:
    return RunEvent(
        run_id=event.run_id,
        seq=event.seq,
        attempt=event.attempt,
        ts=event.ts,
        type=event.type,
        v=event.v,
        payload=event.payload,
    )


def event_json(event: Event) -> str:
    """Return the event as one line of JSON (the hand-made form of ``event_view``: streams live from its speed).

    It is one line to every reader: also those characters are escaped that only some take for line ends.
    """
    body = {
        "run_id": event.run_id,
        "seq": event.seq,
        "attempt": event.attempt,
        "ts": rfc3339(event.ts),
        "type": event.type,
        "v": event.v,
        "payload": event.payload,
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).translate(_LINE_ENDS)
