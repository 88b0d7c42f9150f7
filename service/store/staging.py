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
from service.store.blob_files import CHUNK, NewFile, install_all, storage_errors
from service.store.durability import sync_file, sync_file_system

FEW = 16
"""Up to so many files are made durable one by one; more, by writing out what their file system has in memory."""


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
        self._parked: list[StagedFile] = []
        self._closed = False
        self._lock = threading.Lock()
        # Open from the start: the kernel tells a descriptor which writes failed since it was opened.
        self._disk = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._closed = True
            if self._file is not None:
                self._file.discard()
            for file in self._parked:
                file.path.unlink(missing_ok=True)
            os.close(self._disk)

    def begin(self) -> None:
        """Begin the next file; the one before it was ended."""
        with self._lock, storage_errors():
            self._check_open()
            assert self._file is None
            self._file = NewFile(self._root)

    def write(self, data: bytes | memoryview) -> None:
        with self._lock, storage_errors():
            self._check_open()
            assert self._file is not None
            self._file.write(data)

    def end(self) -> StagedFile:
        with self._lock, storage_errors():
            self._check_open()
            file, self._file = self._file, None
            assert file is not None
            return self._park(file)

    def store(self, fd: int, limit: int) -> tuple[str, int]:
        """Copy at most ``limit`` bytes of the open regular file ``fd``, from its start (``FileSink``); in any thread.

        Raises ValueError if there is more.
        """
        with storage_errors():
            file = self._new()
            try:
                while data := os.pread(fd, min(CHUNK, limit - file.size + 1), file.size):
                    if file.size + len(data) > limit:
                        raise ValueError(f"more than {limit} bytes")
                    file.write(data)
            except BaseException:
                file.discard()
                raise
            with self._lock:
                self._park(file)
        return file.digest(), file.size

    def read(self, file: StagedFile, limit: int) -> bytes:
        """Return a small file's content. Raises TooLarge("blob_too_large")."""
        if file.size_bytes > limit:
            raise TooLarge("blob_too_large", f"more than {limit} bytes")
        return file.path.read_bytes()

    def keep_all(self) -> None:
        """As :meth:`keep`, for every file that was ended."""
        self.keep(list(self._parked))

    def keep(self, files: Iterable[StagedFile]) -> None:
        """Make each of ``files`` a blob; durable on return. Files of the same content become one."""
        chosen = {f.sha256: f for f in files}
        with self._lock, storage_errors():
            self._check_open()
            moves = [(file.path, file.sha256) for file in chosen.values()]
            # Before they are to be seen, and (their names) before anybody refers to them.
            if len(moves) <= FEW:
                for file in chosen.values():
                    sync_file(file.path)
                install_all(self._root, moves)
            else:
                sync_file_system(self._disk)
                install_all(self._root, moves, durable=False)
                sync_file_system(self._disk)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the staging was closed")

    def _new(self) -> NewFile:
        with self._lock:
            self._check_open()
            return NewFile(self._root)

    def _park(self, file: NewFile) -> StagedFile:
        if self._closed:
            file.discard()
        self._check_open()
        self._parked.append(StagedFile(file.digest(), file.size, file.park()))
        return self._parked[-1]
