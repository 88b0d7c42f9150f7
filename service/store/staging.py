"""Files that become blobs together or not at all: until :meth:`Staging.keep`, nothing of them is to be seen.

For worker threads. Whoever closes it wins over a thread that is still at it.
"""

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from service.domain.errors import TooLarge
from service.store.blob_files import MODE, NewFile, install, storage_errors


@dataclass(frozen=True, slots=True)
class StagedFile:
    sha256: str
    size_bytes: int
    path: Path


class Staging:
    """A context; what was not kept when it ends is removed. All methods raise Unavailable("storage_full")."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._file: NewFile | None = None
        self._parked: list[Path] = []
        self._closed = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._closed = True
            if self._file is not None:
                self._file.discard()
            for path in self._parked:
                path.unlink(missing_ok=True)

    def begin(self) -> None:
        """Begin the next file; the one before it was ended."""
        with self._lock, storage_errors():
            assert self._file is None
            if self._closed:
                raise RuntimeError("the staging was closed")
            self._file = NewFile(self._root)

    def write(self, data: bytes | memoryview) -> None:
        with self._lock, storage_errors():
            assert self._file is not None
            self._file.write(data)

    def end(self) -> StagedFile:
        with self._lock, storage_errors():
            file, self._file = self._file, None
            assert file is not None
            self._parked.append(file.park())
            return StagedFile(file.digest(), file.size, self._parked[-1])

    def read(self, file: StagedFile, limit: int) -> bytes:
        """Return a small file's content. Raises TooLarge("blob_too_large")."""
        if file.size_bytes > limit:
            raise TooLarge("blob_too_large", f"more than {limit} bytes")
        return file.path.read_bytes()

    def keep(self, files: Iterable[StagedFile]) -> None:
        """Make each of ``files`` a blob; durable on return. Files of the same content become one."""
        with self._lock, storage_errors():
            for file in {f.sha256: f for f in files}.values():
                _make_durable(file.path)
                install(self._root, file.path, file.sha256)


def _make_durable(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(fd, MODE)
        os.fsync(fd)
    finally:
        os.close(fd)
