"""Zip archives, and the documents that are some: every member is inflated once, counted, against its checksum."""

import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from service.evidence.integrity.checker.findings import MIB, Seen, Trouble

MAX_MEMBERS = 20_000
MAX_UNPACKED = 1024 * MIB
FREE_UNPACKED = 64 * MIB
MAX_RATIO = 200
"""Above ``FREE_UNPACKED`` no honest archive is smaller than this fraction of its content."""
_PIECE = 256 * 1024


class Budget:
    """Counts what was unpacked from ``packed`` bytes. Raises Trouble ``bomb``."""

    def __init__(self, packed: int) -> None:
        self.most = min(MAX_UNPACKED, max(FREE_UNPACKED, packed * MAX_RATIO))
        self.done = 0

    def spend(self, amount: int) -> None:
        self.done += amount
        if self.done > self.most:
            raise Trouble("bomb", f"unpacks to more than {self.most >> 20} MiB")


@contextmanager
def opened(path: Path) -> Generator[zipfile.ZipFile]:
    """Open an archive whose members are few and readable. Raises Trouble."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MAX_MEMBERS:
                raise Trouble("bomb", f"{len(members)} members")
            if any(m.flag_bits & 1 for m in members):
                raise Trouble("encrypted", "members need a password")
            yield archive
    except zipfile.BadZipFile as error:
        raise Trouble("cannot_open" if _has_end(path) else "truncated", str(error)) from error
    except (zlib.error, EOFError) as error:
        raise Trouble("cannot_open", f"a member does not inflate: {error}") from error
    except NotImplementedError as error:
        raise Trouble("cannot_open", f"a member is packed in an unknown way: {error}") from error


def inflate_all(archive: zipfile.ZipFile, packed: int) -> int:
    """Read every member to its end, checksums included; return the bytes. Raises Trouble, BadZipFile."""
    budget = Budget(packed)
    for member in archive.infolist():
        with archive.open(member) as file:
            while piece := file.read(_PIECE):
                budget.spend(len(piece))
    return budget.done


def read_zip(path: Path, _: str) -> Seen:
    with opened(path) as archive:
        unpacked = inflate_all(archive, path.stat().st_size)
        return Seen({"entries": len(archive.infolist()), "unpacked_bytes": unpacked})


def _has_end(path: Path) -> bool:
    """Whether there is an end record: an archive without one was cut off."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 66_000))
        return b"PK\x05\x06" in file.read()
