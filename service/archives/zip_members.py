"""The central directory of a zip, and the header before each member: read, compared, and refused where they lie."""

import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

from service.archives.contract import malformed, unsafe, unsupported
from service.archives.meter import Meter
from service.archives.zip_end import Directory

STORED, DEFLATED = 0, 8
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_CENTRAL_SIGNATURE = b"PK\x01\x02"
LOCAL = struct.Struct("<4s5H3L2H")
_LOCAL_SIGNATURE = b"PK\x03\x04"
_ENCRYPTED = 0x0001 | 0x0040 | 0x2000
_PATCH, _SIZES_FOLLOW = 0x0020, 0x0008
_DOS_DIRECTORY = 0x10
_FULL = 0xFFFFFFFF
_ZIP64 = 0x0001


@dataclass(frozen=True, slots=True)
class ZipMember:
    name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int
    """Of its local header."""
    mode: int
    mtime: float

    @property
    def is_directory(self) -> bool:
        return self.name.endswith(b"/")


def read_members(file: BinaryIO, directory: Directory, meter: Meter) -> Iterator[ZipMember]:
    """Yield what the central directory lists, in its order. Raises Invalid at what cannot be taken."""
    at, end = directory.offset, directory.offset + directory.size
    for _ in range(directory.entries):
        meter.entry()
        file.seek(at)
        record = file.read(_CENTRAL.size)
        if len(record) < _CENTRAL.size or not record.startswith(_CENTRAL_SIGNATURE):
            raise malformed("the directory is broken")
        name_size, extra_size, comment_size = _CENTRAL.unpack(record)[10:13]
        meter.header(max(name_size, extra_size, comment_size))
        at += _CENTRAL.size + name_size + extra_size + comment_size
        if at > end:
            raise malformed("the directory is longer than it says")
        yield _member(record, file.read(name_size), file.read(extra_size))
    if at != end:
        raise malformed("the directory is shorter than it says")


def data_offset(file: BinaryIO, member: ZipMember) -> int:
    """Return where a member's bytes begin. Raises Invalid if the header before them is not that of the directory."""
    file.seek(member.offset)
    record = file.read(LOCAL.size)
    if len(record) < LOCAL.size or not record.startswith(_LOCAL_SIGNATURE):
        raise malformed("the member is not where the directory says it is", member.name)
    _, _, flags, method, _, _, crc, packed, size, name_size, extra_size = LOCAL.unpack(record)
    name, extra = file.read(name_size), file.read(extra_size)
    same = (name, flags, method) == (member.name, member.flags, member.method)
    if not same or not _sizes_agree(member, (crc, packed, size), extra):
        raise malformed("the member's header and the directory differ", member.name)
    return member.offset + LOCAL.size + name_size + extra_size


def _sizes_agree(member: ZipMember, local: tuple[int, int, int], extra: bytes) -> bool:
    crc, packed, size = local
    if member.flags & _SIZES_FOLLOW and crc == 0 and packed in (0, _FULL) and size in (0, _FULL):
        return True
    size, packed = _wide(extra, [size, packed], member.name)
    return (crc, packed, size) == (member.crc, member.packed, member.size)


def _member(record: bytes, name: bytes, extra: bytes) -> ZipMember:
    fields = _CENTRAL.unpack(record)
    flags, method, time, date, crc, packed, size = fields[3:10]
    disk, _, attributes, offset = fields[13:17]
    _check_kind(name, flags, method, attributes)
    size, packed, offset = _wide(extra, [size, packed, offset], name)
    if disk or (method == STORED and size != packed):
        raise malformed("its sizes or its place cannot be", name)
    member = ZipMember(name, flags, method, crc, packed, size, offset, attributes >> 16, _unix_time(date, time))
    if member.is_directory and (size or crc):
        raise malformed("a directory has content", name)
    return member


def _check_kind(name: bytes, flags: int, method: int, attributes: int) -> None:
    if flags & _ENCRYPTED:
        raise unsafe("is encrypted", name)
    if method not in (STORED, DEFLATED) or flags & _PATCH:
        raise unsupported("is packed in a way that is not taken (stored and deflated are)", name)
    kind, is_directory = stat.S_IFMT(attributes >> 16), name.endswith(b"/")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise unsafe("is a link or a special file; only files and directories are taken", name)
    if (kind == stat.S_IFDIR or attributes & _DOS_DIRECTORY) and not is_directory:
        raise unsafe("is a directory with the name of a file", name)
    if kind == stat.S_IFREG and is_directory:
        raise unsafe("is a file with the name of a directory", name)


def _wide(extra: bytes, values: list[int], name: bytes) -> list[int]:
    """Return the values; those that are full stand in the zip64 field, which holds exactly them."""
    wanted = [i for i, value in enumerate(values) if value == _FULL]
    field = _extra_field(extra, name)
    if field is None:
        if wanted:
            raise malformed("a zip64 field is missing", name)
        return values
    found = list(values)
    if len(field) == 8 * len(wanted):
        numbers = struct.unpack(f"<{len(wanted)}Q", field)
    elif len(values) * 8 == len(field):  # all of them, also those that need not be
        numbers = struct.unpack(f"<{len(values)}Q", field)
        if any(value not in (_FULL, number) for value, number in zip(values, numbers, strict=True)):
            raise malformed("a zip64 field says something else", name)
        return list(numbers)
    else:
        raise malformed("a zip64 field has a wrong length", name)
    for i, number in zip(wanted, numbers, strict=True):
        found[i] = number
    return found


def _extra_field(extra: bytes, name: bytes) -> bytes | None:
    found: bytes | None = None
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        at += 4 + size
        if at > len(extra):
            raise malformed("an extra field is longer than it says", name)
        if kind == _ZIP64:
            if found is not None:
                raise malformed("it has two zip64 fields", name)
            found = extra[at - size : at]
    return found


def _unix_time(date: int, time: int) -> float:
    """Return a DOS time as if it were UTC; what is no time is the epoch."""
    try:
        when = datetime(
            (date >> 9) + 1980, date >> 5 & 15, date & 31, time >> 11, time >> 5 & 63, (time & 31) * 2, tzinfo=UTC
        )
    except ValueError:
        return 0.0
    return when.timestamp()
