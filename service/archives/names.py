"""Names of an archive's entries: clean relative paths that mean one place each, or a refusal.

Names that differ only in case or in Unicode normalisation are different files: the workspace's file system keeps them
apart, and so does everything between here and there.
"""

import re

from service.archives.contract import ArchiveLimits, malformed, over_limit, unsafe_path
from service.domain.errors import Invalid
from service.domain.paths import check_relative_path

_DRIVE = re.compile(r"[A-Za-z]:")
_COMPONENT_BYTES = 255


class Names:
    """The names seen so far in one archive."""

    def __init__(self, limits: ArchiveLimits) -> None:
        self._limits = limits
        self._files: set[str] = set()
        self._directories: set[str] = set()

    def file(self, raw: bytes) -> str:
        """Return the path of a file. Raises Invalid: unsafe, too long, or there already."""
        path = self._checked(raw.removeprefix(b"./"), raw)
        if path in self._files:
            raise Invalid("archive_duplicate_path", f"{path!r} is there twice", entry=path)
        self._files.add(path)
        return path

    def directory(self, raw: bytes) -> None:
        """Note a directory; ``./`` is the root of the archive itself."""
        name = raw.removeprefix(b"./").removesuffix(b"/")
        if name not in (b"", b".") or not raw:
            self._directories.add(self._checked(name, raw))

    def finish(self) -> None:
        """Raise Invalid("archive_path_clash") if something is both a file and a directory."""
        clash = next(iter(self._files & self._directories), None)
        for path in self._files:
            parent = path.rpartition("/")[0]
            while parent and clash is None:
                clash = parent if parent in self._files else None
                parent = parent.rpartition("/")[0]
        if clash is not None:
            raise Invalid("archive_path_clash", f"{clash!r} is both a file and a directory", entry=clash)

    def _checked(self, name: bytes, raw: bytes) -> str:
        limits = self._limits
        if len(name) > limits.path_bytes:
            raise over_limit("path_bytes", limits.path_bytes, raw)
        try:
            path = check_relative_path(name.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise unsafe_path("the name is not UTF-8", raw) from error
        except ValueError as error:
            raise unsafe_path(str(error), raw) from error
        self._check_components(path, raw)
        return path

    def _check_components(self, path: str, raw: bytes) -> None:
        parts = path.split("/")
        if len(parts) > self._limits.depth:
            raise over_limit("depth", self._limits.depth, raw)
        if _DRIVE.match(path):
            raise unsafe_path("the path begins with a drive letter", raw)
        if any(len(part.encode()) > _COMPONENT_BYTES for part in parts):
            raise over_limit("name_bytes", _COMPONENT_BYTES, raw)


def terminated(field: bytes) -> bytes:
    """Return a NUL-padded field up to its first NUL. Raises Invalid if anything but padding follows."""
    name, _, rest = field.partition(b"\0")
    if rest.strip(b"\0"):
        raise malformed("something follows the end of a name", name)
    return name
