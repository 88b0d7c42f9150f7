"""One header block of a tar archive: 512 bytes, checked and read."""

from dataclasses import dataclass

from service.archives.contract import malformed, unsupported
from service.archives.names import terminated

BLOCK = 512
_POSIX, _GNU, _OLD = b"ustar\x0000", b"ustar  \x00", bytes(8)
_BASE256 = 0x80
_OCTAL = frozenset(b"01234567")


@dataclass(frozen=True, slots=True)
class TarHeader:
    name: bytes
    mode: int
    size: int
    mtime: int
    kind: bytes
    """One byte: the typeflag."""
    link: bytes = b""
    """What a link points to."""


def read_header(block: bytes) -> TarHeader:
    """Read a block of 512 bytes. Raises Invalid: wrong checksum, unknown format, or a field that is no number."""
    if sum(block[:148]) + 8 * 0x20 + sum(block[156:]) != _number(block[148:156], "checksum"):
        raise malformed("a header's checksum is wrong")
    magic = block[257:265]
    if magic not in (_POSIX, _GNU, _OLD):
        raise unsupported("this is no POSIX, GNU or old tar archive")
    name = terminated(block[:100])
    prefix = terminated(block[345:500]) if magic == _POSIX else b""
    return TarHeader(
        name=prefix + b"/" + name if prefix else name,
        mode=_number(block[100:108], "mode"),
        size=_number(block[124:136], "size"),
        mtime=_signed(block[136:148]),
        kind=block[156:157],
        link=block[157:257].partition(b"\0")[0],
    )


def _number(field: bytes, what: str) -> int:
    value = _signed(field, what)
    if value < 0:
        raise malformed(f"a header's {what} is negative")
    return value


def _signed(field: bytes, what: str = "time") -> int:
    """Read octal digits, or two's complement in base 256 where the first bit is set."""
    if field[0] & _BASE256:
        value = int.from_bytes(field, "big") & ((1 << (8 * len(field) - 1)) - 1)
        sign = 1 << (8 * len(field) - 2)
        return value - 2 * sign if value & sign else value
    digits = field.strip(b"\0 ")
    if not _OCTAL.issuperset(digits):
        raise malformed(f"a header's {what} is not a number")
    return int(digits or b"0", 8)
