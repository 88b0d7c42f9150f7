"""A lock on a data directory that the kernel frees with its holder, and files that are whole or not there."""

import fcntl
import os
from pathlib import Path

from service.domain.errors import Conflict


class DataLock:
    """Exclusive flock on a file. The file stays; only the lock tells anything."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock or raise :class:`Conflict` (``data_dir_busy``) with the pid of the holder."""
        if self._fd is not None:
            return
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(fd)
            detail = f"{self._path.parent} is in use by process {holder} (lock {self._path.name})"
            raise Conflict("data_dir_busy", detail, pid=holder) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def make_data_dir(path: Path) -> None:
    """Make ``path`` when it is missing: others may pass through (the database's user must) but not look around."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        return
    path.chmod(0o711)


def write_whole(path: Path, data: bytes, mode: int = 0o600, *, uid: int | None = None, durable: bool = False) -> None:
    """Replace ``path`` so that a reader sees the old bytes or the new ones.

    ``durable``: safe from a crash of the machine on return; that can take seconds on a busy disk.
    """
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "wb") as file:
        if uid is not None:
            os.fchown(fd, uid, -1)
        file.write(data)
        file.flush()
        if durable:
            os.fsync(fd)
    temporary.rename(path)
    if durable:
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
