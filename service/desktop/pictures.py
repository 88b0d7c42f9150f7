"""What the first bytes of a picture say about it. Nothing is decoded: that is for whoever looks at it."""

import struct

from service.desktop.performed import Format
from service.domain.desktop import MOST_SIDE

_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_MARKERS_WITHOUT_SIZE = {0x01, *range(0xD0, 0xD8)}
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""JPEG's start-of-frame markers."""
_MOST_SEGMENTS = 100


class NotAPicture(Exception):
    """It is not what it says it is, or is larger than a screen can be."""


def size_of(format: Format, data: bytes) -> tuple[int, int]:
    """Return width and height in pixels, at most 4096 each. Raises NotAPicture."""
    try:
        width, height = _READERS[format](data)
    except (struct.error, IndexError) as error:
        raise NotAPicture(f"a {format} that ends in its head") from error
    if not (0 < width <= MOST_SIDE and 0 < height <= MOST_SIDE):
        raise NotAPicture(f"a {format} of {width}x{height}")
    return width, height


def _png(data: bytes) -> tuple[int, int]:
    if not data.startswith(_PNG):
        raise NotAPicture("no png")
    width, height = struct.unpack_from(">II", data, len(_PNG))
    return width, height


def _webp(data: bytes) -> tuple[int, int]:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or struct.unpack_from("<I", data, 4)[0] + 8 > len(data) + 1:
        raise NotAPicture("no webp")
    kind = data[12:16]
    if kind == b"VP8L" and data[20] == 0x2F:
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8X" and not data[20] & 0x02:  # no animation
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
        return width, height
    raise NotAPicture("a webp of an unknown kind")


def _jpeg(data: bytes) -> tuple[int, int]:
    if data[:2] != b"\xff\xd8":
        raise NotAPicture("no jpeg")
    at = 2
    for _ in range(_MOST_SEGMENTS):
        if data[at] != 0xFF:
            break
        marker = data[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2
        if marker not in _MARKERS_WITHOUT_SIZE:
            at += max(2, struct.unpack_from(">H", data, at)[0])
    raise NotAPicture("a jpeg without a frame")


_READERS = {"png": _png, "webp": _webp, "jpeg": _jpeg}
