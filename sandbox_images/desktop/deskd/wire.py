"""Frames to and from the host: lengths of head and body, head in JSON, body in bytes."""

import json
import os
import struct
from collections.abc import Sequence
from typing import Any, cast

from faults import Refused

LENGTHS = struct.Struct(">II")
MOST_HEAD_IN = 8 << 20
MOST_HEAD_OUT = 1 << 20
MOST_BODY_OUT = 24 << 20


def receive(fd: int) -> dict[str, Any] | None:
    """Return the next request; None at the end. Raises Refused: what follows cannot be made sense of either."""
    first = _exactly(fd, LENGTHS.size)
    if first is None:
        return None
    head, body = LENGTHS.unpack(first)
    if head > MOST_HEAD_IN or body:
        raise Refused(f"a frame of {head} + {body} bytes")
    text = _exactly(fd, head)
    return None if text is None else _object(text)


def send(fd: int, head: dict[str, Any], body: Sequence[bytes] = ()) -> None:
    """Raises OSError: nobody reads any more."""
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    total = sum(map(len, body))
    if len(text) > MOST_HEAD_OUT or total > MOST_BODY_OUT:
        raise ValueError(f"an answer of {len(text)} + {total} bytes")
    for part in (LENGTHS.pack(len(text), total) + text, *body):
        left = memoryview(part)
        while left:
            left = left[os.write(fd, left) :]


def _exactly(fd: int, size: int) -> bytes | None:
    got = bytearray()
    while len(got) < size:
        piece = os.read(fd, min(size - len(got), 1 << 20))
        if not piece:
            return None
        got += piece
    return bytes(got)


def _object(text: bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused("not JSON") from error
    if not isinstance(value, dict):
        raise Refused("not a JSON object")
    return cast("dict[str, Any]", value)
