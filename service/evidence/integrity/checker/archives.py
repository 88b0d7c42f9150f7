"""tar, gz, bz2, xz, 7z: read to the end, counted; nothing is written anywhere."""

import bz2
import gzip
import lzma
import re
import struct
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from service.evidence.integrity.checker.findings import Seen, Trouble
from service.evidence.integrity.checker.programs import run
from service.evidence.integrity.checker.zips import MAX_MEMBERS, Budget

_PIECE = 256 * 1024
_OPENERS: dict[str, Callable[[Path], IO[bytes]]] = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}  # pyright: ignore[reportAssignmentType]
_SIZE = re.compile(r"^Size = (\d{1,18})$", re.MULTILINE)


class _Counted:
    """A stream that may not give more than its budget."""

    def __init__(self, file: BinaryIO, budget: Budget) -> None:
        self._file = file
        self._budget = budget

    def read(self, size: int = _PIECE) -> bytes:
        piece = self._file.read(size)
        self._budget.spend(len(piece))
        return piece


def read_packed(path: Path, kind: str) -> Seen:
    """gz, bz2, xz: one stream, which may be a tar."""
    budget = Budget(path.stat().st_size)
    try:
        with _OPENERS[kind](path) as file:
            counted = _Counted(cast("BinaryIO", file), budget)
            start = counted.read(512)
            is_tar = start[257:262] == b"ustar"
            while counted.read():
                pass
        seen = Seen({"unpacked_bytes": budget.done})
        if is_tar:
            with _OPENERS[kind](path) as file:
                seen.facts["entries"] = _members(cast("BinaryIO", file), Budget(path.stat().st_size))
    except EOFError as error:
        raise Trouble("truncated", str(error)) from error
    except (OSError, zlib.error, lzma.LZMAError) as error:
        raise Trouble("cannot_open", str(error)) from error
    return seen


def read_tar(path: Path, _: str) -> Seen:
    budget = Budget(path.stat().st_size)
    with path.open("rb") as file:
        entries = _members(file, budget)
    return Seen({"entries": entries, "unpacked_bytes": budget.done})


def _members(file: BinaryIO, budget: Budget) -> int:
    counted = cast("BinaryIO", _Counted(file, budget))
    entries = 0
    try:
        with tarfile.open(fileobj=counted, mode="r|") as archive:
            for _ in archive:
                entries += 1
                if entries > MAX_MEMBERS:
                    raise Trouble("bomb", f"more than {MAX_MEMBERS} members")
                cast("Any", archive).members = []  # it would keep all of them
    except tarfile.TarError as error:
        late = "unexpected end" in str(error) or "truncated" in str(error)
        raise Trouble("truncated" if late else "cannot_open", str(error)) from error
    return entries


def _ends_early(path: Path) -> bool:
    """Whether the list of members, which comes last, lies beyond the end."""
    with path.open("rb") as file:
        head = file.read(32)
        size = file.seek(0, 2)
    if len(head) < 32:
        return True
    offset, length = struct.unpack_from("<QQ", head, 12)
    return 32 + offset + length > size


def read_7z(path: Path, _: str) -> Seen:
    listed = run(["7zz", "l", "-slt", "-ba", "-p-", "-mmt1", path], path.parent)
    if "Wrong password" in listed.stdout + listed.stderr or "Encrypted = +" in listed.stdout:
        raise Trouble("encrypted", "members need a password")
    if listed.code != 0:
        raise Trouble("truncated" if _ends_early(path) else "cannot_open", "the list of members cannot be read")
    sizes = [int(size) for size in _SIZE.findall(listed.stdout)]
    if len(sizes) > MAX_MEMBERS:
        raise Trouble("bomb", f"{len(sizes)} members")
    budget = Budget(path.stat().st_size)
    budget.spend(sum(sizes))
    tested = run(["7zz", "t", "-bd", "-p-", "-mmt1", path], path.parent)
    if tested.code != 0:
        raise Trouble("cannot_open", "a member does not unpack")
    return Seen({"entries": len(sizes), "unpacked_bytes": budget.done})
