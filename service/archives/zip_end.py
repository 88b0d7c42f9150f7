"""Where a zip's directory lies: the record at its very end, and its zip64 form where one is needed."""

import struct
from dataclasses import dataclass
from typing import BinaryIO

from service.archives.contract import malformed, unsupported
from service.archives.meter import Meter

_END = struct.Struct("<4s4H2LH")
_END_SIGNATURE = b"PK\x05\x06"
_LOCATOR = struct.Struct("<4sLQL")
_LOCATOR_SIGNATURE = b"PK\x06\x07"
_END64 = struct.Struct("<4sQ2H2L4Q")
_END64_SIGNATURE = b"PK\x06\x06"
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Directory:
    offset: int
    size: int
    entries: int


def find_directory(file: BinaryIO, size: int, meter: Meter) -> Directory:
    """Return where the central directory of a zip of ``size`` bytes is; it reaches up to the end records.

    Raises Invalid for what is no zip, has more than a comment behind it, or disagrees with itself.
    """
    start, record = _end_record(file, size, meter)
    _, disk, first_disk, here, entries, length, offset, _ = _END.unpack(record)
    if disk or first_disk or here != entries:
        raise unsupported("the archive has several parts")
    found = Directory(offset, length, entries)
    if start >= _LOCATOR.size:
        locator = _read(file, start - _LOCATOR.size, _LOCATOR.size)
        if locator.startswith(_LOCATOR_SIGNATURE):
            start, found = _zip64(file, start - _LOCATOR.size, locator, found)
    if found.offset + found.size != start:
        raise malformed("the directory is not where the archive says it is")
    return found


def _end_record(file: BinaryIO, size: int, meter: Meter) -> tuple[int, bytes]:
    reach = min(size, _END.size + meter.limits.header_bytes)
    tail = _read(file, size - reach, reach)
    at = tail.rfind(_END_SIGNATURE)
    while at >= 0:
        record = tail[at : at + _END.size]
        if len(record) == _END.size and at + _END.size + _END.unpack(record)[-1] == reach:
            return size - reach + at, record
        at = tail.rfind(_END_SIGNATURE, 0, at)
    raise malformed("this is no zip archive, or it is cut off, or something follows it")


def _zip64(file: BinaryIO, locator_at: int, locator: bytes, short: Directory) -> tuple[int, Directory]:
    _, disk, start, disks = _LOCATOR.unpack(locator)
    if disk or disks > 1:
        raise unsupported("the archive has several parts")
    if start + _END64.size != locator_at:
        raise malformed("the zip64 record is not where the archive says it is")
    signature, rest, _, _, disk, first_disk, here, entries, length, offset = _END64.unpack(
        _read(file, start, _END64.size)
    )
    if signature != _END64_SIGNATURE or rest != _END64.size - 12 or disk or first_disk or here != entries:
        raise malformed("the zip64 record is broken")
    pairs = ((short.entries, entries, _FULL16), (short.size, length, _FULL32), (short.offset, offset, _FULL32))
    if any(brief not in (full, exact) for brief, exact, full in pairs):
        raise malformed("the zip64 record says something else than the end record")
    return start, Directory(offset, length, entries)


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    data = file.read(size)
    if len(data) != size:
        raise malformed("the archive is cut off")
    return data
