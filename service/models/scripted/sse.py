"""Server-sent events as providers frame them."""

import json
from collections.abc import Mapping
from typing import Any


def named(event: Mapping[str, Any]) -> bytes:
    """Return a frame with ``event: <type>``, as Anthropic and the Responses API send them."""
    return f"event: {event['type']}\n".encode() + data(event)


def data(event: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
