"""Stores the files of a walk in a few threads: one file's bytes are hashed while the next one is found."""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from threading import BoundedSemaphore
from types import TracebackType
from typing import Self

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.sandboxes.contract import FileSink
from service.sandboxes.docker.signatures import HEAD_BYTES, TAIL_BYTES, media_type

THREADS = 3
_WAITING = 2 * THREADS
"""Most open files that wait for a thread."""


class Storing:
    """A context; it ends when every file that was taken is stored and closed."""

    def __init__(self, sink: FileSink) -> None:
        self._sink = sink
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="collect")
        self._free = BoundedSemaphore(_WAITING)
        self._failed: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown(wait=True)

    def take(self, fd: int, path: str, size: int, mtime: float) -> Future[ArtifactEntry]:
        """Store the open file ``fd`` of ``size`` bytes and close it, in any case.

        The entry is of kind ``skipped_over_limit`` if the file is longer. Raises what an earlier file's store raised.
        """
        self._free.acquire()
        if self._failed is not None:
            os.close(fd)
            raise self._failed
        return self._pool.submit(self._one, fd, path, size, mtime)

    def _one(self, fd: int, path: str, size: int, mtime: float) -> ArtifactEntry:
        try:
            head, tail = os.pread(fd, HEAD_BYTES, 0), os.pread(fd, TAIL_BYTES, max(0, size - TAIL_BYTES))
            sha256, stored = self._sink.store(fd, size)
        except ValueError:
            return ArtifactEntry(path, EntryKind.OVER_LIMIT, size, mtime=mtime)
        except BaseException as error:
            self._failed = error
            raise
        finally:
            os.close(fd)
            self._free.release()
        return ArtifactEntry(path, EntryKind.FILE, stored, sha256, media_type(path, head, tail), mtime=mtime)
