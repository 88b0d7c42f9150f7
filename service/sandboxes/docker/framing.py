"""Messages between host and launcher, the host's half of ``launcher/launcher_wire.py`` (a unit test compares them).

Everything that comes in is bounded before it is buffered: a peer that announces more than ``limit`` bytes is cut off.
"""

import hashlib
import hmac
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

VERSION = 1
HEADER = struct.Struct(">BBQI")
SIZE = struct.Struct(">I")
MAX_MESSAGE = (4 << 20) + (128 << 10)
"""Most bytes of one message's body."""
MAX_HANDSHAKE = 64
"""Most bytes of a message from a peer that has not proved itself."""
FRAME = 64 << 10
TRANSFER = 256 << 10
RING = 4 << 20
NONCE_BYTES = KEY_BYTES = 32


class Kind(IntEnum):
    HELLO, CHALLENGE, PROOF, READY = 1, 2, 3, 4
    START, EXEC, FILE, CHUNK, COMMIT, READ, ACK, RESUME, FORGET, SIGNAL, LIST, OPEN, TYPE, PIPE = range(10, 24)
    RESULT, DATA, OUTPUT, RESUMED, EXIT = range(30, 35)


class Violation(Exception):
    """A peer broke the protocol: its connection is dropped."""


class Message(NamedTuple):
    kind: int
    flag: int
    number: int
    body: bytes


def encode(kind: Kind, *, flag: int = 0, number: int = 0, body: bytes = b"") -> bytes:
    return HEADER.pack(kind, flag, number, len(body)) + body


def pack(*fields: bytes) -> bytes:
    return b"".join([part for field in fields for part in (SIZE.pack(len(field)), field)])


def unpack(body: bytes) -> list[bytes]:
    """Split a body into its fields. Raises Violation."""
    fields: list[bytes] = []
    at = 0
    while at < len(body):
        if at + SIZE.size > len(body):
            raise Violation("a field without its length")
        (size,) = SIZE.unpack_from(body, at)
        at += SIZE.size + size
        if at > len(body):
            raise Violation("a field over the end of its message")
        fields.append(body[at - size : at])
    return fields


def integer(field: bytes) -> int | None:
    """Return the number of a decimal field, null for an empty one. Raises Violation."""
    if not field:
        return None
    if len(field) > 18 or not field.isdigit():
        raise Violation("not a number")
    return int(field)


def natural(field: bytes) -> int:
    """Return the number of a decimal field. Raises Violation."""
    value = integer(field)
    if value is None:
        raise Violation("a number is missing")
    return value


def prove(key: bytes, role: bytes, ours: bytes, theirs: bytes) -> bytes:
    """Return the proof that ``role`` (``host`` or ``launcher``, so that none can be reflected) holds the key."""
    return hmac.new(key, role + ours + theirs, hashlib.sha256).digest()


class Inbox:
    """Cuts a byte stream into messages; never holds more than one message of ``limit`` bytes and one read."""

    def __init__(self) -> None:
        self.limit = MAX_HANDSHAKE
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def messages(self) -> Iterator[Message]:
        """Yield complete messages. Raises Violation as soon as a header announces more than ``limit``."""
        while len(self._bytes) >= HEADER.size:
            kind, flag, number, length = HEADER.unpack_from(self._bytes)
            if length > self.limit:
                raise Violation(f"a message of {length} bytes")
            end = HEADER.size + length
            if len(self._bytes) < end:
                return
            body = bytes(memoryview(self._bytes)[HEADER.size : end])
            del self._bytes[:end]
            yield Message(kind, flag, number, body)
