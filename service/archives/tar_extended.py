"""Extended headers of tar archives: PAX records and GNU long names, as far as they may change the entry that follows."""

import re
from dataclasses import dataclass

from service.archives.contract import malformed, unsafe, unsupported
from service.archives.names import terminated
from service.archives.tar_header import TarHeader

_LENGTH = re.compile(rb"([1-9][0-9]{0,5}) ")
_SIZE = re.compile(rb"[0-9]{1,19}")
_TIME = re.compile(rb"-?[0-9]{1,30}(?:\.[0-9]{0,30})?")
_UNTOLD = (0, 0o77777777777)
"""Sizes that a header has when the record is to be believed."""


@dataclass(frozen=True, slots=True)
class Extension:
    """What the next entry takes from the extended headers before it."""

    path: bytes | None = None
    size: int | None = None
    mtime: float | None = None
    link: bytes | None = None
    capable: bool = False
    """The file has capabilities of its own, as a setuid one has."""

    def path_of(self, header: TarHeader) -> bytes:
        return header.name if self.path is None else self.path

    def size_of(self, header: TarHeader) -> int:
        """Raises Invalid if the two sizes differ: readers would disagree on what follows."""
        if self.size is not None and header.size not in (*_UNTOLD, self.size):
            raise malformed("the size in the PAX header is not that in the header", self.path_of(header))
        return header.size if self.size is None else self.size

    def link_of(self, header: TarHeader) -> bytes:
        return header.link if self.link is None else self.link

    def mtime_of(self, header: TarHeader) -> float:
        return float(header.mtime) if self.mtime is None else self.mtime


def read_pax(data: bytes, *, everywhere: bool) -> Extension:
    """Read the records of a PAX header; ``everywhere``: of a global one, which may set no path and no size.

    Raises Invalid.
    """
    records = _records(data)
    if any(key.startswith(b"GNU.sparse") for key in records):
        raise unsafe("sparse files are not taken", records.get(b"GNU.sparse.name", b"GNU.sparse"))
    if records.get(b"hdrcharset", b"ISO-IR 10646 2000 UTF-8") != b"ISO-IR 10646 2000 UTF-8":
        raise unsupported("names are not in UTF-8")
    if everywhere:
        if records.keys() & {b"path", b"size", b"linkpath"}:
            raise malformed("a global PAX header names one file")
        return Extension()
    capable = b"SCHILY.xattr.security.capability" in records
    return Extension(records.get(b"path"), _size(records), _mtime(records), records.get(b"linkpath"), capable)


def long_name(data: bytes) -> Extension:
    return Extension(path=terminated(data))


def long_link(data: bytes) -> Extension:
    return Extension(link=terminated(data))


def _records(data: bytes) -> dict[bytes, bytes]:
    records: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        match = _LENGTH.match(data, at)
        if match is None:
            raise malformed("a PAX record has no length")
        record = data[match.end() : at + int(match[1])]
        key, equals, value = record[:-1].partition(b"=")
        if not equals or record[-1:] != b"\n" or at + int(match[1]) > len(data):
            raise malformed("a PAX record is not as long as it says")
        if key in records:
            raise malformed("a PAX header says something twice", key)
        records[key] = value
        at += int(match[1])
    return records


def _size(records: dict[bytes, bytes]) -> int | None:
    text = records.get(b"size")
    if text is None:
        return None
    if not _SIZE.fullmatch(text):
        raise malformed("the size in a PAX header is not a number")
    return int(text)


def _mtime(records: dict[bytes, bytes]) -> float | None:
    text = records.get(b"mtime")
    if text is None:
        return None
    if not _TIME.fullmatch(text):
        raise malformed("the time in a PAX header is not a number")
    return float(text)
