"""Cutting a byte stream into event texts without cutting a code point."""

from collections.abc import Iterator

from service.domain.limits import OUTPUT_EVENT_BYTES


def whole_length(data: bytes | bytearray | memoryview) -> int:
    """Return how many bytes of ``data`` can be decoded now: all but an unfinished code point (≤ 3 bytes) at its end."""
    size = len(data)
    for back in range(1, min(3, size) + 1):
        byte = data[size - back]
        if byte & 0xC0 == 0x80:
            continue
        return size - back if _sequence_length(byte) > back else size
    return size


def pieces(data: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, piece ≤ 16 KiB) over ``data``, whose first byte has offset ``start``; the last piece takes the rest."""
    at = 0
    while at < len(data):
        piece = data[at : at + OUTPUT_EVENT_BYTES]
        if at + len(piece) < len(data):
            piece = piece[: whole_length(piece)]
        yield start + at, piece
        at += len(piece)


def _sequence_length(lead: int) -> int:
    if lead >= 0xF8 or lead < 0xC0:
        return 1
    return 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
