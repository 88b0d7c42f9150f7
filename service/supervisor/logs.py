"""Log files of children: each child writes its own, at its own pace; we only keep them short.

A file is opened for appending and cut in place, so a child neither blocks on us nor dies with us while it writes.
"""

import os
from pathlib import Path
from typing import BinaryIO

LIMIT_BYTES = 16 * 1024 * 1024
_KEPT_BYTES = 8 * 1024 * 1024


def open_log(path: Path) -> BinaryIO:
    """Open ``path`` (mode 0600) for appending, after cutting it where it is too long."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    cut(path)
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    return os.fdopen(fd, "ab", buffering=0)


def cut(path: Path, limit_bytes: int = LIMIT_BYTES) -> None:
    """Move the newest 8 MiB of a file longer than ``limit_bytes`` to ``<path>.1`` and empty the file.

    Lines written between the two steps are lost; a flood is what makes that likely.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    if size <= limit_bytes:
        return
    try:
        _keep_newest(path, size)
    finally:  # also when the disk is full: then this is what frees it
        os.truncate(path, 0)


def _keep_newest(path: Path, size: int) -> None:
    with path.open("rb") as log:
        log.seek(size - min(size, _KEPT_BYTES))
        kept = log.read(_KEPT_BYTES)
    previous = path.with_name(f"{path.name}.1")
    previous.unlink(missing_ok=True)
    fd = os.open(previous, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as target:
        target.write(kept)
