"""Readable, reversible names for paths that are any bytes (domain/artifacts.py)."""

import hashlib
from urllib.parse import unquote_to_bytes

MAX_PATH_BYTES = 4096


def readable(raw: bytes) -> str:
    """Return the path as text: bytes that are no UTF-8, and '%', are percent-encoded."""
    text = raw.decode("utf-8", "surrogateescape")
    if text.isascii() and "%" not in text:
        return text
    return "".join(_escaped(c) for c in text)


def raw_path(path: str) -> bytes:
    """Return the bytes that ``readable`` was given."""
    return unquote_to_bytes(path)


def shortened(raw: bytes) -> str:
    """Return a bounded stand-in for a path over the limit: its beginning and a digest. Not reversible."""
    digest = hashlib.sha256(raw).hexdigest()[:16]
    return f"{readable(raw[:512])}…{digest}"


def _escaped(char: str) -> str:
    if char == "%":
        return "%25"
    code = ord(char)
    return f"%{code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else char
