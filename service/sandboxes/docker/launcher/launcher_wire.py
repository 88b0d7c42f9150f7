"""Messages, fields and proofs: the sandbox's half of ``framing.py``.

Header ``>BBQI`` (kind, flag, number, length), then ``length`` bytes; structured bodies are fields, each a ``>I`` length
and its bytes. A unit test compares the two halves.
"""

from __future__ import annotations

import struct

from launcher_small import sha256

HELLO, CHALLENGE, PROOF, READY = 1, 2, 3, 4
START, EXEC, FILE, CHUNK, COMMIT, READ, ACK, RESUME, FORGET, SIGNAL, LIST, OPEN, TYPE, PIPE = range(10, 24)
RESULT, DATA, OUTPUT, RESUMED, EXIT = range(30, 35)
VERSION = 1
HEADER = struct.Struct(">BBQI")
SIZE = struct.Struct(">I")
MAX_MESSAGE = (4 << 20) + (128 << 10)
FRAME = 64 << 10
TRANSFER = 256 << 10
TICK_S = 0.05


class Refused(Exception):
    """A request that cannot be done: answered to the host as (type, detail)."""

    def __init__(self, type: str, detail: str) -> None:
        super().__init__(detail)
        self.type = type
        self.detail = detail


def pack(*fields: bytes) -> bytes:
    return b"".join([part for field in fields for part in (SIZE.pack(len(field)), field)])


def unpack(body: bytes) -> list[bytes]:
    fields: list[bytes] = []
    at = 0
    while at < len(body):
        (size,) = SIZE.unpack_from(body, at)
        at += SIZE.size + size
        if at > len(body):
            raise ValueError("field over the end")
        fields.append(body[at - size : at])
    return fields


def number(value: float | None) -> bytes:
    return b"" if value is None else b"%d" % value


def prove(key: bytes, role: bytes, ours: bytes, theirs: bytes) -> bytes:
    # HMAC-SHA256 by hand: `hmac` is not in every minimal Python.
    block = key.ljust(64, b"\0")
    inner = sha256(bytes(b ^ 0x36 for b in block) + role + ours + theirs).digest()
    return sha256(bytes(b ^ 0x5C for b in block) + inner).digest()


def same(a: bytes, b: bytes) -> bool:
    difference = len(a) ^ len(b)
    for x, y in zip(a, b):
        difference |= x ^ y
    return difference == 0
