"""A picture, a recording and a film as bytes that real readers open."""

import hashlib
import math
import struct
import zlib

RATE = 8000
MAX_SIDE = 1024
FILM_SIDE = 32


def png(width: int, height: int, seed: str) -> bytes:
    """Return a picture of one colour, that of the seed."""
    width, height = min(max(1, width), MAX_SIDE), min(max(1, height), MAX_SIDE)
    rows = (b"\0" + _colour(seed) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _png(b"IHDR", head) + _png(b"IDAT", zlib.compress(rows)) + _png(b"IEND", b"")


def wav(text: str) -> bytes:
    """Return a tone of 20 ms per character, which carries its text as a comment: see :func:`said`."""
    samples = (int(8000 * math.sin(2 * math.pi * 440 * n / RATE)) for n in range(min(len(text), 1000) * RATE // 50))
    sound = b"".join(struct.pack("<h", sample) for sample in samples)
    form = struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)
    comment = b"INFO" + _riff(b"ICMT", text.encode() + b"\0")
    return _riff(b"RIFF", b"WAVE" + _riff(b"fmt ", form) + _riff(b"LIST", comment) + _riff(b"data", sound))


def said(recording: bytes) -> str | None:
    """Return the text of a recording that :func:`wav` made; null of any other."""
    at = recording.find(b"ICMT")
    if not recording.startswith(b"RIFF") or at < 0:
        return None
    size = struct.unpack_from("<I", recording, at + 4)[0]
    return recording[at + 8 : at + 8 + size].rstrip(b"\0").decode(errors="replace")


def avi(seconds: int, seed: str) -> bytes:
    """Return a film of one uncompressed frame per second."""
    side, frames = FILM_SIDE, min(max(1, seconds), 60)
    size = 3 * side * side
    main = struct.pack("<14I", 1_000_000, size, 0, 0x10, frames, 0, 1, size, side, side, 0, 0, 0, 0)
    stream = struct.pack(
        "<4s4sIHHIIIIIIII4H", b"vids", b"DIB ", 0, 0, 0, 0, 1, 1, 0, frames, size, 0, 0, 0, 0, side, side
    )
    form = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 24, 0, size, 0, 0, 0, 0)
    streams = _riff(b"LIST", b"strl" + _riff(b"strh", stream) + _riff(b"strf", form))
    header = _riff(b"LIST", b"hdrl" + _riff(b"avih", main) + streams)
    pictures = b"".join(_riff(b"00db", _colour(f"{seed} {n}") * side * side) for n in range(frames))
    index = b"".join(struct.pack("<4sIII", b"00db", 0x10, 4 + n * (size + 8), size) for n in range(frames))
    return _riff(b"RIFF", b"AVI " + header + _riff(b"LIST", b"movi" + pictures) + _riff(b"idx1", index))


def _colour(seed: str) -> bytes:
    return hashlib.sha256(seed.encode()).digest()[:3]


def _png(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _riff(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
