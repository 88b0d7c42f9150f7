"""A private protocol: tokens by JSONPath, or none."""

import json
from typing import Any

from service.domain.models import TokenUsage
from service.gateway.dialects.contract import Answer
from tests.unit.gateway.dialects.answers import meter_of

_PATHS = {"input_tokens": "$.stats.in", "output_tokens": "$..out"}


def _read(data: bytes, paths: dict[str, Any] | None) -> Answer:
    meter = meter_of("/opaque/run", opaque_usage=paths)
    for i in range(0, len(data), 5):
        meter.feed(data[i : i + 5])
    return meter.answer()


def test_tokens_are_where_the_catalogue_says() -> None:
    body = json.dumps({"stats": {"in": 7, "x": {"out": 5}}}).encode()
    assert _read(body, _PATHS).usage == TokenUsage(input_tokens=7, output_tokens=5)
    assert _read(body, {"output_tokens": "$..out"}).usage == TokenUsage(output_tokens=5)
    assert _read(body, None).usage is None
    assert _read(body, None).complete


def test_of_a_stream_the_last_word_counts() -> None:
    events = b'data: {"stats":{"in":7}}\n\ndata: {"out":2}\n\ndata: {"out":9}\n\ndata: end\n\n'
    assert _read(events, _PATHS).usage == TokenUsage(input_tokens=7, output_tokens=9)


def test_what_is_not_told_is_unknown() -> None:
    for body in (b"", b"\x00\x01binary", b"{", b'{"stats":{"in":7}}', b'{"stats":{"in":"7"},"out":1}', b"[1]"):
        assert _read(body, _PATHS).usage is None, body
