"""Messages between the API and a worker's bridge (CONTRACTS 5): a JSON head and bytes, both bounded before they are read.

One connection carries one call: the client's request, then the worker's frames; the last one has ``done`` or
``error``. Nothing durable passes here; whoever breaks a connection has not undone what was asked for.
"""

import asyncio
import json
import struct
from dataclasses import dataclass, field
from typing import Any, cast

from service.domain.errors import Fault
from service.domain.limits import MIB

MAX_HEAD = 8 * MIB
"""A batch of actions, or what the clipboard had."""
MAX_BODY = 64 * MIB
"""Most bytes of one file, read or written."""
_SIZES = struct.Struct(">II")


class BridgeBroken(Fault):
    """The peer went away, or does not keep to the protocol."""


@dataclass(frozen=True, slots=True)
class Frame:
    head: dict[str, Any] = field(default_factory=dict[str, Any])
    body: bytes = b""


async def read_frame(reader: asyncio.StreamReader) -> Frame:
    """Raises BridgeBroken."""
    try:
        head_size, body_size = _SIZES.unpack(await reader.readexactly(_SIZES.size))
        if head_size > MAX_HEAD or body_size > MAX_BODY:
            raise BridgeBroken("bridge_broken", f"a frame of {head_size} and {body_size} bytes")
        head: object = json.loads(await reader.readexactly(head_size))
        body = await reader.readexactly(body_size)
    except (asyncio.IncompleteReadError, OSError, ValueError) as error:
        raise BridgeBroken("bridge_broken", f"{type(error).__name__}: {error}"[:200]) from error
    if not isinstance(head, dict):
        raise BridgeBroken("bridge_broken", "a head that is no object")
    return Frame(cast("dict[str, Any]", head), body)


async def write_frame(writer: asyncio.StreamWriter, frame: Frame) -> None:
    """Raises BridgeBroken."""
    head = json.dumps(frame.head).encode()
    try:
        writer.write(_SIZES.pack(len(head), len(frame.body)) + head)
        if frame.body:
            writer.write(frame.body)
        await writer.drain()
    except OSError as error:
        raise BridgeBroken("bridge_broken", str(error)) from error
