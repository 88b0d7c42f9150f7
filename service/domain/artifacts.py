"""The sealed deliverable: a manifest of what was there, and the content of what could be taken."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from service.domain.tasks import canonical_digest


class EntryKind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "skipped_symlink"
    FIFO = "skipped_fifo"
    SOCKET = "skipped_socket"
    DEVICE = "skipped_device"
    OVER_LIMIT = "skipped_over_limit"
    PATH_TOO_LONG = "path_too_long"
    UNREADABLE = "unreadable"


REASONS: Mapping[str, str] = MappingProxyType(
    {
        EntryKind.SYMLINK: "a symbolic link: links are listed and never followed",
        EntryKind.FIFO: "a fifo: only regular files are taken",
        EntryKind.SOCKET: "a socket: only regular files are taken",
        EntryKind.DEVICE: "a device: only regular files are taken",
        EntryKind.OVER_LIMIT: "beyond the task's limits of files or bytes",
        EntryKind.PATH_TOO_LONG: "its path is too long or too deep",
        EntryKind.UNREADABLE: "its permissions kept it from being read",
    }
)
"""Why an entry has no content, in words, by kind."""


@dataclass(frozen=True, slots=True)
class ArtifactEntry:
    """One directory entry below a collect root."""

    path: str
    """Readable path from /workspace; undecodable bytes are percent-encoded (as is '%'), so it is reversible."""
    kind: EntryKind
    size_bytes: int = 0
    """Apparent size."""
    sha256: str | None = None
    mime: str | None = None
    """By signature, never by parsing; null where unknown."""
    link_target: str | None = None
    mtime: float | None = None
    """Unix seconds, clamped to 1970…9999."""


@dataclass(frozen=True, slots=True)
class Deliverable:
    entries: tuple[ArtifactEntry, ...]
    truncated: bool = False
    """A limit was hit: entries beyond it are listed as far as the limits on listing allow."""
    refused: str | None = None
    """Why nothing could be taken (a collect root is not a directory); entries are then empty."""

    @property
    def files(self) -> list[ArtifactEntry]:
        return [e for e in self.entries if e.kind is EntryKind.FILE]

    @property
    def total_bytes(self) -> int:
        return sum(e.size_bytes for e in self.files)

    @property
    def problems(self) -> int:
        return sum(e.kind not in (EntryKind.FILE, EntryKind.DIRECTORY) for e in self.entries)

    def manifest(self) -> dict[str, Any]:
        return {
            "v": 1,
            "truncated": self.truncated,
            "refused": self.refused,
            "entries": [asdict(e) for e in self.entries],
        }

    def digest(self) -> str:
        """Return the sha256 over paths, kinds, sizes and contents; times are not part of it."""
        keys = [[e.path, e.kind.value, e.size_bytes, e.sha256] for e in self.entries]
        return canonical_digest({"entries": sorted(keys), "refused": self.refused})
