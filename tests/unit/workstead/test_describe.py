"""Events in one line, whatever a run put into them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from service.domain.events import EventType
from workstead.cli.describe import describe
from workstead.models import Event

KNOWN: list[tuple[str, dict[str, Any], str]] = [
    ("model.request", {"n": 1, "state": "started", "requested_model": "m"}, "1 · m · asked"),
    (
        "model.request",
        {"n": 2, "state": "finished", "requested_model": "m", "status": 200, "usage_known": True, "input_tokens": 5,
         "output_tokens": 7, "cost_usd": "0.01"},
        "2 · m · 200 · 5 + 7 tokens · $0.01",
    ),
    ("model.request", {"n": 3, "state": "finished", "error": "upstream_stalled"}, "3 · upstream_stalled · usage unknown"),
    ("egress.decision", {"method": "CONNECT", "host": "a.example", "port": 443, "allowed": True}, "CONNECT a.example:443 · let through"),
    ("egress.decision", {"allowed": False, "reason": "bad_header"}, "request · refused: bad_header"),
    ("tool.call", {"name": "bash", "arguments": {"a": 1}}, 'bash · {"a": 1}'),
    ("tool.result", {"is_error": True, "output": "no"}, "error · no"),
    ("agent.final", {"status": "success", "reason": "", "text": "done"}, "success · done"),
    ("desktop.action", {"actions": [{"type": "click", "x": 9, "y": 8}, {"type": "key", "keys": ["ctrl", "s"]}], "title": "Calc"},
     'click 9,8, key ["ctrl", "s"] · Calc'),
    ("desktop.action", {"actions": [{"type": "type", "text": "ab"}] * 6, "error": "desktop_lost"}, "type ab, type ab, type ab, type ab and 2 more · desktop_lost"),
    ("confirmation", {"state": "denied", "by": "policy"}, "denied · policy"),
    ("client.message", {"direction": "to_client", "text": "hi"}, "to the client · hi"),
]  # fmt: skip


def event(kind: str, payload: dict[str, Any]) -> Event:
    return Event(seq=1, attempt=1, type=kind, ts=datetime(2026, 1, 1, tzinfo=UTC), v=1, payload=payload)


@pytest.mark.parametrize(("kind", "payload", "said"), KNOWN)
def test_words(kind: str, payload: dict[str, Any], said: str) -> None:
    assert describe(event(kind, payload)) == [said]


@pytest.mark.parametrize("kind", [*EventType, "of.the.future"])
@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"text": 5, "n": None, "host": [1], "arguments": "\x1b[2J", "output": {"x": "\x1b]0;"}},
        {"actions": 5},
        {"actions": [5, {"x": "\x1b[2J", "type": [1]}, {"keys": {"\n": "\x1b"}}]},
    ],
)
def test_any_payload_is_one_safe_line(kind: str, payload: dict[str, Any]) -> None:
    for line in describe(event(kind, payload)):
        assert "\x1b" not in line
        assert "\n" not in line
