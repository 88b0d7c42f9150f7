"""What of a run's events is the same in a replay (CONTRACTS 6): no times, numbers, ids, durations, samples; output
joined per stream, since where it was cut is chance."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from service.domain.events import Event, EventType
from service.gateway.cassettes.normal import normal_text

_LEFT_OUT = frozenset({
    EventType.RESOURCES, EventType.RUN_PHASE, EventType.ATTEMPT_STARTED, EventType.PROVIDER_WAIT, EventType.OUTPUT_CLOSED,
    EventType.OUTPUT_TRUNCATED, EventType.DRIVER, EventType.RUN_READY,
    # Made by another process, maybe after the run's end; the deliverable's digest is in the story.
    EventType.DELIVERABLE_CHECKED, EventType.VALIDITY,
})  # fmt: skip
_OF_THE_GATEWAY = frozenset({
    EventType.MODEL_REQUEST, EventType.PROVIDER_TOOLS, EventType.EGRESS, EventType.SERVICE_CALL,
})  # fmt: skip
_VOLATILE = re.compile(
    r"(?:.*_)?(?:ids?|uuid|seq|ts|pid|timestamp|time|times|ms|s|offset|elapsed|duration|latency|evidence|tries)"
    r"|(?:duration|session|started|finished|created|updated)(?:_.*|[A-Z].*)?|ttft.*|.*(?:Id|ID|Ms|At|Uuid)"
    r"|manifest_sha256"
)
"""Members of payloads, and of JSON lines that a program prints. A deliverable's manifest has its files' times."""
_PAID = ("cost_usd", "price_date", "replay_of_n", "seconds")
"""Of calls to services: a recorded one costs nothing, and says so."""
_STREAM, _TEXT = "stream", "text"
_PICTURE, _PIXELS = frozenset({"sha256", "format", "width", "height"}), frozenset({"sha256", "size_bytes"})
"""Of a screen no two runs have the same."""
_REFERENCE = "picture:{"
"""So begins one in a journal."""


def canonical(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return the run's story without chance: its events in order, then the gateway's, then each stream's whole output.

    Which of the gateway's word and the program's line about the same answer is written first is chance, and so is whether
    the end of a request or the beginning of the next one is.
    """
    story: list[dict[str, Any]] = []
    gateway: list[dict[str, Any]] = []
    streams: dict[str, list[str]] = {}
    for event in events:
        if event.type == EventType.OUTPUT:
            streams.setdefault(str(event.payload.get(_STREAM)), []).append(str(event.payload.get(_TEXT, "")))
        elif event.type not in _LEFT_OUT:
            told = gateway if event.type in _OF_THE_GATEWAY else story
            unlike = _PAID if event.type == EventType.SERVICE_CALL else ()
            payload = {key: value for key, value in event.payload.items() if key not in unlike}
            told.append({"type": event.type, **_stable(payload)})
    story += sorted(gateway, key=lambda told: (told["type"], told.get("n") or 0, told.get("state") == "finished"))
    for stream, pieces in sorted(streams.items()):
        lines = "".join(pieces).splitlines()
        story.append({"type": str(EventType.OUTPUT), _STREAM: stream, "lines": [_line(line) for line in lines]})
    return story


def _line(line: str) -> Any:
    """A line that is a JSON object is compared as one."""
    if line.startswith("{"):
        try:
            return _stable(cast("Mapping[str, Any]", json.loads(line)))
        except (ValueError, RecursionError):
            pass
    return normal_text(line)


def _stable(value: Any) -> Any:
    if isinstance(value, str):
        return normal_text(value) if not value.startswith(_REFERENCE) else _REFERENCE
    if isinstance(value, list):
        return [_stable(one) for one in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        gone = _PIXELS if value.keys() >= _PICTURE else frozenset[str]()
        return {key: _stable(one) for key, one in pairs if key not in gone and not _VOLATILE.fullmatch(key)}
    return value
