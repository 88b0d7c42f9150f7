"""The container of doc, xls, ppt, msg: header, size and directory. What is in its streams is not read."""

import struct
from pathlib import Path

from service.evidence.integrity.checker.findings import MIB, Seen, Trouble

_MAIN = ("WordDocument", "Workbook", "Book", "PowerPoint Document", "__properties_version1.0")
_END = 0xFFFFFFFA
"""Sector numbers from here on have special meanings."""
_MAX_SECTORS = 4096
_ENTRY = 128


def read_ole(path: Path, _: str) -> Seen:
    data = path.read_bytes()[: 64 * MIB]
    if len(data) < 512:
        raise Trouble("truncated", "shorter than its header")
    shift = struct.unpack_from("<H", data, 30)[0]
    if shift not in (9, 12):
        raise Trouble("cannot_open", "no such sector size")
    sector = 1 << shift
    names = _names(data, sector)
    if "EncryptedPackage" in names:
        raise Trouble("encrypted", "the document needs a password")
    if not any(name in names for name in _MAIN):
        raise Trouble("cannot_open", "no document inside")
    return Seen({"entries": len(names)})


def _names(data: bytes, sector: int) -> list[str]:
    """Return the names in the directory, whose sectors are a chain in the allocation table."""
    table = _table(data, sector)
    at = struct.unpack_from("<I", data, 48)[0]
    names: list[str] = []
    for _ in range(_MAX_SECTORS):
        start = (at + 1) * sector
        if start + sector > len(data):
            raise Trouble("truncated", "the directory lies beyond the end")
        for offset in range(start, start + sector, _ENTRY):
            length = struct.unpack_from("<H", data, offset + 64)[0]
            if 2 <= length <= 64:
                names.append(data[offset : offset + length - 2].decode("utf-16-le", "replace"))
        if at >= len(table) or table[at] >= _END:
            break
        at = table[at]
    return names


def _table(data: bytes, sector: int) -> list[int]:
    """Return the allocation table as far as the header's own list of its sectors goes: enough for a directory."""
    table: list[int] = []
    for at in struct.unpack_from("<109I", data, 76):
        if at >= _END:
            continue
        start = (at + 1) * sector
        if start + sector > len(data):
            raise Trouble("truncated", "the allocation table lies beyond the end")
        table += struct.unpack_from(f"<{sector // 4}I", data, start)
    return table
