"""Resumable uploads: one growing file per project and digest, checked as a whole when it is complete."""

import asyncio
import errno
import fcntl
import hashlib
import os
from collections.abc import AsyncIterable, Generator
from contextlib import contextmanager
from pathlib import Path

from service.domain.errors import Conflict, Invalid, TooLarge
from service.store.blob_files import CHUNK, MODE, install, storage_errors, touch

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Uploads:
    """Unfinished uploads below ``<root>/uploads``. Offsets are durable bytes."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def offset(self, project_id: str, sha: str) -> int:
        try:
            return self._path(project_id, sha).lstat().st_size
        except FileNotFoundError:
            return 0

    async def append(self, project_id: str, sha: str, offset: int, chunks: AsyncIterable[bytes], total: int) -> bool:
        """See ``BlobStore.upload_append``."""
        path = self._path(project_id, sha)
        with storage_errors(), _locked(path) as fd:
            at = os.fstat(fd).st_size
            if at != offset:
                raise Conflict("upload_offset", f"the upload stands at byte {at}", offset=at)
            try:
                at = await _receive(fd, at, chunks, total)
            finally:
                if at < total:  # what is whole is made durable when it has been checked
                    await asyncio.to_thread(os.fsync, fd)
            if at < total:
                return False
            await asyncio.to_thread(self._complete, fd, path, sha)
            return True

    def remove_old(self, older_than: float) -> int:
        """Remove uploads and temporary files that nobody wrote to since ``older_than`` (Unix seconds)."""
        freed = 0
        for folder in ("uploads", "tmp"):
            for path in (self._root / folder).iterdir():
                try:
                    found = path.lstat()
                    if found.st_mtime < older_than:
                        path.unlink()
                        freed += found.st_size
                except FileNotFoundError:
                    continue
        return freed

    def _complete(self, fd: int, path: Path, sha: str) -> None:
        if _digest(fd) != sha:
            path.unlink()
            raise Invalid("wrong_digest", "the content does not have the digest that was announced")
        os.fchmod(fd, MODE)
        os.fsync(fd)
        install(self._root, path, sha)
        touch(self._root, sha)

    def _path(self, project_id: str, sha: str) -> Path:
        # By project: whoever knows a digest must not see, or meddle with, another project's unfinished bytes.
        return self._root / "uploads" / hashlib.sha256(f"{project_id}/{sha}".encode()).hexdigest()


@contextmanager
def _locked(path: Path) -> Generator[int]:
    """Open the upload's file, which nobody else appends to meanwhile. Raises Conflict("upload_in_progress")."""
    fd = os.open(path, _FLAGS, 0o640)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_nlink == 0:  # completed or forgotten between our open and our lock
            raise BlockingIOError(errno.EWOULDBLOCK, "the upload ended")
        yield fd
    except BlockingIOError as e:
        raise Conflict("upload_in_progress", "another request is uploading this file") from e
    finally:
        os.close(fd)


async def _receive(fd: int, at: int, chunks: AsyncIterable[bytes], total: int) -> int:
    async for chunk in chunks:
        if at + len(chunk) > total:
            raise TooLarge("blob_too_large", f"more than the {total} bytes that were announced")
        at += await asyncio.to_thread(_write, fd, chunk, at)
    return at


def _write(fd: int, data: bytes, at: int) -> int:
    done = 0
    while done < len(data):
        done += os.pwrite(fd, memoryview(data)[done:], at + done)
    return done


def _digest(fd: int) -> str:
    digest, at = hashlib.sha256(), 0
    while data := os.pread(fd, CHUNK, at):
        digest.update(data)
        at += len(data)
    return digest.hexdigest()
