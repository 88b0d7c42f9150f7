"""Archives: what is in them, by name and size. Nothing is unpacked, except one packed stream to see whether it is a tar."""

import bz2
import gzip
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, cast

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.integrity.checker.findings import Trouble
from service.evidence.integrity.checker.programs import run
from service.evidence.integrity.checker.zips import MAX_MEMBERS, Budget, opened

_SHOWN = 2000
_OPENERS: dict[str, Callable[[Path], IO[bytes]]] = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}  # pyright: ignore[reportAssignmentType]
_FIELD = re.compile(r"^(Path|Size) = (.{0,4000})$", re.MULTILINE)
_PIECE = 256 * 1024


def read_zip(path: Path, out: Output) -> None:
    with opened(path) as archive:
        members = archive.infolist()
        _list([(m.filename, m.file_size) for m in members], out)
        comment = archive.comment.decode("utf-8", "replace")
    out.part("metadata", "comment", comment)
    _check(sum(m.file_size for m in members), path)


def read_tar(path: Path, out: Output) -> None:
    with path.open("rb") as file:
        _tar(file, Budget(path.stat().st_size), out)


def read_packed(path: Path, out: Output) -> None:
    """gz, bz2, xz: one stream, which may be a tar."""
    budget = Budget(path.stat().st_size)
    try:
        with _OPENERS[out.kind](path) as file:
            start = file.read(4096)
        if start[257:262] == b"ustar":
            with _OPENERS[out.kind](path) as file:
                _tar(file, budget, out)
            return
        with _OPENERS[out.kind](path) as file:
            while piece := file.read(_PIECE):
                budget.spend(len(piece))
    except EOFError as error:
        raise Failed("truncated", str(error)) from error
    except (OSError, zlib.error, lzma.LZMAError) as error:
        raise Failed("cannot_open", str(error)) from error
    out.fact("unpacked_bytes", budget.done)
    if b"\x00" not in start:
        out.part("text", "beginning", start.decode("utf-8", "replace"))
        out.omit(chars=max(0, budget.done - len(start)))


def read_7z(path: Path, out: Output) -> None:
    done = run(["7zz", "l", "-slt", "-ba", "-p-", "-mmt1", path], out.scratch)
    if "Wrong password" in done.stdout + done.stderr or "Encrypted = +" in done.stdout:
        raise Failed("encrypted", "members need a password")
    if done.code != 0:
        raise Failed("cannot_open", "the list of members cannot be read")
    entries = [dict(_FIELD.findall(entry)) for entry in done.stdout.split("\n\n")]
    members = [(e["Path"], _number(e.get("Size", ""))) for e in entries if "Path" in e]
    _list(members, out)
    _check(sum(size for _, size in members), path)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


class _Counted:
    """A stream that may not give more than its budget."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self._file = file
        self._budget = budget

    def read(self, size: int = _PIECE) -> bytes:
        piece = self._file.read(size)
        self._budget.spend(len(piece))
        return piece


def _tar(file: IO[bytes], budget: Budget, out: Output) -> None:
    members: list[tuple[str, int]] = []
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", _Counted(file, budget)), mode="r|") as archive:
            for member in archive:
                members.append((member.name + ("" if member.isreg() else "  (no regular file)"), member.size))
                if len(members) > MAX_MEMBERS:
                    raise Trouble("bomb", f"more than {MAX_MEMBERS} members")
                cast("Any", archive).members = []  # it would keep all of them
    except tarfile.TarError as error:
        raise Failed("cannot_open", str(error)) from error
    finally:
        _list(members, out)


def _list(members: Iterable[tuple[str, int]], out: Output) -> None:
    rows = [f"{size:>14}  {name[:1000]}" for name, size in members]
    out.fact("members", len(rows))
    out.part("listing", "bytes and name", "\n".join(rows[:_SHOWN]))
    out.omit(rows=max(0, len(rows) - _SHOWN))


def _check(unpacked: int, path: Path) -> None:
    budget = Budget(path.stat().st_size)
    budget.spend(unpacked)
