"""Durable means: it is there after the power failed."""

import ctypes
import os
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)


def sync_file(path: Path) -> None:
    """Write out one file's content. Follows no link. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file_system(fd: int) -> None:
    """Write out all that the file system of ``fd`` has in memory: for many files, far cheaper than one by one.

    Raises OSError, also for a write that failed since ``fd`` was opened.
    """
    if _libc.syncfs(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
