"""Walk the roots of a dead sandbox's workspace and store regular files.

Everything goes by directory descriptors with O_NOFOLLOW: a link is an entry and never followed, a special file is an
entry and never opened. Sizes are checked before a byte moves, so that a sparse file of 1 TB costs nothing. A name is
data. What a limit keeps out is listed as far as the limit on listing allows.
"""

import errno
import os
import stat
from collections.abc import Sequence
from concurrent.futures import Future

from service.domain.artifacts import ArtifactEntry, Deliverable, EntryKind
from service.domain.limits import Limits
from service.sandboxes.contract import FileSink
from service.sandboxes.docker.readable import MAX_PATH_BYTES, readable, shortened
from service.sandboxes.docker.storing import Storing

MAX_DEPTH = 128
"""Directories below a root; each costs an open descriptor while it is walked."""
MAX_LINK_TARGET = 1024
LATEST_MTIME = 253_402_300_799.0  # the end of the year 9999
PRIVATE = b".home"

_OPEN_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFLNK: EntryKind.SYMLINK,
    stat.S_IFIFO: EntryKind.FIFO,
    stat.S_IFSOCK: EntryKind.SOCKET,
    stat.S_IFCHR: EntryKind.DEVICE,
    stat.S_IFBLK: EntryKind.DEVICE,
}


def collect(top: int, roots: Sequence[str], limits: Limits, sink: FileSink) -> Deliverable:
    """Collect the roots below the open directory ``top``. Blocking; raises OSError where the store or disk fails.

    A root that is missing is empty; one that is, or is reached over, anything but directories refuses the whole.
    """
    with Storing(sink) as storing:
        walk = _Walk(limits, storing)
        for root in sorted(roots):
            parts = [os.fsencode(p) for p in root.split("/")]
            if parts[0] == PRIVATE:
                return Deliverable((), refused=f"{root!r} is not collected")
            try:
                fd = _open_root(top, parts)
            except OSError as error:
                if error.errno == errno.ENOENT:
                    continue
                return Deliverable(
                    (), refused=f"collect root {root!r} is not a directory ({os.strerror(error.errno or 0)})"
                )
            walk.directory(fd, b"/".join(parts), 1)
        return walk.found()


def _open_root(top: int, parts: list[bytes]) -> int:
    fd = os.dup(top)
    for part in parts:
        try:
            below = os.open(part, _OPEN_DIR, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


class _Walk:
    def __init__(self, limits: Limits, storing: Storing) -> None:
        self._entries: list[ArtifactEntry | Future[ArtifactEntry]] = []
        self._truncated = False
        self._storing = storing
        self._bytes_left = limits.deliverable_bytes
        self._files_left = limits.deliverable_files
        self._listing_left = 2 * limits.deliverable_files + 1000

    def found(self) -> Deliverable:
        """Wait for the files that are still being stored; return all entries in the order of the walk."""
        entries = tuple(e if isinstance(e, ArtifactEntry) else e.result() for e in self._entries)
        over = any(e.kind is EntryKind.OVER_LIMIT for e in entries)
        return Deliverable(entries, truncated=self._truncated or over)

    def directory(self, fd: int, path: bytes, depth: int) -> None:
        """Walk an open directory in the order of its names' bytes, and close it."""
        try:
            for name in self._names(fd):
                self._entry(fd, name, path + b"/" + name, depth)
        finally:
            os.close(fd)

    def _names(self, fd: int) -> list[bytes]:
        names: list[bytes] = []
        with os.scandir(fd) as listing:
            for item in listing:
                if len(names) >= self._listing_left:
                    self._truncated = True
                    break
                names.append(os.fsencode(item.name))
        return sorted(names)

    def _entry(self, parent: int, name: bytes, path: bytes, depth: int) -> None:
        if self._listing_left <= 0:
            self._truncated = True
            return
        self._listing_left -= 1
        if len(path) > MAX_PATH_BYTES:
            self._skip(path, EntryKind.PATH_TOO_LONG)
            return
        info = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            self._subdirectory(parent, name, path, depth, info)
        elif stat.S_ISREG(info.st_mode):
            self._file(parent, name, path, info)
        else:
            self._special(parent, name, path, info)

    def _subdirectory(self, parent: int, name: bytes, path: bytes, depth: int, info: os.stat_result) -> None:
        if depth >= MAX_DEPTH:
            self._skip(path, EntryKind.PATH_TOO_LONG)
            return
        try:
            fd = os.open(name, _OPEN_DIR, dir_fd=parent)
        except PermissionError:
            self._skip(path, EntryKind.UNREADABLE)
            return
        self._entries.append(ArtifactEntry(readable(path), EntryKind.DIRECTORY, mtime=_clamped(info)))
        self.directory(fd, path, depth + 1)

    def _special(self, parent: int, name: bytes, path: bytes, info: os.stat_result) -> None:
        kind = _KINDS.get(stat.S_IFMT(info.st_mode), EntryKind.DEVICE)
        target = None
        if kind is EntryKind.SYMLINK:
            target = readable(os.readlink(name, dir_fd=parent)[:MAX_LINK_TARGET])
        self._entries.append(ArtifactEntry(readable(path), kind, link_target=target, mtime=_clamped(info)))

    def _file(self, parent: int, name: bytes, path: bytes, info: os.stat_result) -> None:
        if self._files_left <= 0 or info.st_size > self._bytes_left:
            self._over_limit(path, info)
            return
        try:
            fd = os.open(name, _OPEN_FILE, dir_fd=parent)
        except PermissionError:
            self._skip(path, EntryKind.UNREADABLE)
            return
        # Reserved by its size, which is final: what is dead does not write.
        self._bytes_left -= info.st_size
        self._files_left -= 1
        self._entries.append(self._storing.take(fd, readable(path), info.st_size, _clamped(info)))

    def _over_limit(self, path: bytes, info: os.stat_result) -> None:
        self._entries.append(ArtifactEntry(readable(path), EntryKind.OVER_LIMIT, info.st_size, mtime=_clamped(info)))

    def _skip(self, path: bytes, kind: EntryKind) -> None:
        name = shortened(path) if kind is EntryKind.PATH_TOO_LONG else readable(path)
        self._entries.append(ArtifactEntry(name, kind))


def _clamped(info: os.stat_result) -> float:
    return min(max(info.st_mtime, 0.0), LATEST_MTIME)
