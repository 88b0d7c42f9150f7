"""What a reader of archives hands on, what it obeys, and how it refuses.

A reader is fed pieces of an archive as they arrive and pushes each regular file into a :class:`Sink`. It opens no path,
keeps no member in memory, and raises nothing but Invalid (and what the sink raises).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from service.domain.errors import Invalid
from service.domain.limits import GIB, KIB, MIB

PIECE = 256 * KIB
"""Most bytes that a reader hands on, or inflates, at once."""
LATEST_MTIME = 253_402_300_799.0
"""The end of the year 9999, in Unix seconds."""
_SHOWN = 200


class ArchiveKind(StrEnum):
    TAR = "tar"
    TAR_GZIP = "tar.gz"
    TAR_ZSTD = "tar.zst"
    TAR_XZ = "tar.xz"
    ZIP = "zip"


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """All are counted while an archive is read, never taken from what it says of itself."""

    total_bytes: int = 8 * GIB
    """Most bytes of the unpacked stream (of a tar, with its headers), and most bytes of the archive itself."""
    member_bytes: int = 8 * GIB
    entries: int = 25_000
    """Most headers, those of directories and extended ones included."""
    ratio: int = 250
    """Most bytes inflated per byte packed, after ``ratio_free_bytes``."""
    ratio_free_bytes: int = 64 * MIB
    path_bytes: int = 1024
    depth: int = 64
    """Most components of a path."""
    header_bytes: int = 64 * KIB
    """Most bytes of one extended header, extra field or comment."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A regular file. Owners, setuid bits and write permission for others are not kept."""

    path: str
    size_bytes: int
    mode: int
    """0o644 or 0o755."""
    mtime: float
    """Unix seconds, clamped to 1970…9999."""


class Sink(Protocol):
    """Takes files one after the other: ``begin``, any number of ``write``, ``end``. Whatever it raises ends the reader."""

    def begin(self, entry: Entry) -> None: ...
    def write(self, data: bytes | memoryview) -> None: ...
    def end(self) -> None: ...


class Reader(Protocol):
    """A reader of one archive. After it has raised, it is not used again."""

    def feed(self, data: bytes) -> None:
        """Take the next piece of the archive. Raises Invalid."""
        ...

    def finish(self) -> None:
        """The archive ends here. Raises Invalid if it may not."""
        ...


def entry_of(path: str, size_bytes: int, mode: int, mtime: float) -> Entry:
    """Return an entry with its mode and time made harmless."""
    return Entry(path, size_bytes, 0o755 if mode & 0o100 else 0o644, min(max(mtime, 0.0), LATEST_MTIME))


def shown(name: bytes) -> str:
    """Return a name as it may be printed: what is not UTF-8 or not printable is escaped; bounded in length."""
    text = name[:_SHOWN].decode("utf-8", "backslashreplace")
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return escaped + ("…" if len(name) > _SHOWN else "")


def malformed(detail: str, name: bytes | None = None) -> Invalid:
    return _invalid("archive_malformed", detail, name)


def unsafe(detail: str, name: bytes) -> Invalid:
    """An entry that is no plain file or directory."""
    return _invalid("archive_unsafe_entry", detail, name)


def unsafe_path(detail: str, name: bytes) -> Invalid:
    return _invalid("archive_unsafe_path", detail, name)


def unsupported(detail: str, name: bytes | None = None) -> Invalid:
    return _invalid("archive_unsupported", detail, name)


def over_limit(limit: str, most: int, name: bytes | None = None) -> Invalid:
    what = "" if name is None else f"{shown(name)!r}: "
    fields = {} if name is None else {"entry": shown(name)}
    return Invalid("archive_limit", f"{what}more than {most} ({limit})", limit=limit, most=most, **fields)


def _invalid(type: str, detail: str, name: bytes | None) -> Invalid:
    if name is None:
        return Invalid(type, detail)
    return Invalid(type, f"{shown(name)!r}: {detail}", entry=shown(name))
