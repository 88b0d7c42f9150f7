"""Files below the workspace, written and read without following a link."""

# ruff: noqa: SIM105 - contextlib costs start-up time

from __future__ import annotations

import os
import stat
import time

from launcher_small import deque
from launcher_wire import DATA, HEADER, RESULT, TRANSFER, Refused, number, pack

MAX_DOWNLOADS = 16
MAX_LISTED = 10_000
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def split(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    if any(part in (b"", b".", b"..") for part in parts) or b"\0" in path:
        raise Refused("bad_path", "a path is relative and has no empty, '.' or '..' component")
    return parts


def walk(root: bytes, parents: list[bytes], make: bool) -> int:
    """Open the folder without following a link: the agent may have planted one anywhere."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for name in parents:
        try:
            if make:
                try:
                    os.mkdir(name, 0o755, dir_fd=fd)
                except FileExistsError:
                    pass
            inner = os.open(name, DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def entry(item: os.DirEntry[str]) -> list[bytes]:
    """Name, kind (f, d, l, o), bytes, milliseconds of the last change."""
    status = item.stat(follow_symlinks=False)
    kinds = {stat.S_IFREG: b"f", stat.S_IFDIR: b"d", stat.S_IFLNK: b"l"}
    kind = kinds.get(stat.S_IFMT(status.st_mode), b"o")
    return [os.fsencode(item.name), kind, number(status.st_size), number(max(0, status.st_mtime * 1000))]


def listing(root: bytes, path: bytes, most: int) -> bytes:
    """The entries of one folder, at most ``most`` (in no order then), after a mark that there are more."""
    fd = walk(root, split(path) if path else [], False)
    fields: list[bytes] = []
    more = b""
    try:
        with os.scandir(fd) as entries:
            for item in entries:
                if len(fields) >= 4 * most or len(fields) >= 4 * MAX_LISTED:
                    more = b"1"
                    break
                try:
                    fields += entry(item)
                except OSError:
                    pass  # gone since
    finally:
        os.close(fd)
    return pack(b"ok", more, *fields)


class Upload:
    """One file being written under a temporary name; it appears whole, by renaming, or not at all."""

    def __init__(self, root: bytes, path: bytes, mode: int) -> None:
        *parents, self.name = split(path)
        self.mode = mode & 0o777
        self.temporary = b".workstead-%d-%d" % (os.getpid(), time.monotonic_ns())
        self.folder = walk(root, parents, True)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            self.fd = os.open(self.temporary, flags, 0o600, dir_fd=self.folder)
        except OSError:
            os.close(self.folder)
            raise

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.fd, rest) :]

    def finish(self) -> None:
        os.fchmod(self.fd, self.mode)
        os.rename(self.temporary, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        os.close(self.fd)
        os.close(self.folder)

    def abort(self) -> None:
        try:
            os.unlink(self.temporary, dir_fd=self.folder)
        except OSError:
            pass
        os.close(self.fd)
        os.close(self.folder)


class Files:
    """Uploads (one at a time, in batches with one answer) and downloads of one connection."""

    def __init__(self, root: bytes) -> None:
        self.root = root
        self.upload: Upload | None = None
        self.error: Refused | OSError | None = None
        self.downloads: deque[tuple[int, int, int]] = deque()

    def begin(self, fields: list[bytes], last: bool, first: bool) -> None:
        self.drop_upload()
        if first:
            self.error = None
        if self.error is None:
            try:
                self.upload = Upload(self.root, fields[0], int(fields[1]))
            except (Refused, OSError) as error:
                self.error = error
        self.chunk(fields[2], last)

    def chunk(self, data: bytes, last: bool) -> None:
        if self.upload is None:
            return
        try:
            self.upload.write(data)
            if last:
                self.upload.finish()
                self.upload = None
        except OSError as error:
            self.error = error
            self.drop_upload()

    def commit(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error

    def drop_upload(self) -> None:
        if self.upload is not None:
            self.upload.abort()
            self.upload = None

    def open(self, request: int, path: bytes, limit: int) -> None:
        *parents, name = split(path)
        if len(self.downloads) >= MAX_DOWNLOADS:
            raise Refused("busy", "too many files are being read")
        folder = walk(self.root, parents, False)
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        finally:
            os.close(folder)
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            os.close(fd)
            too_large = stat.S_ISREG(status.st_mode)
            raise Refused("too_large" if too_large else "not_a_file", f"{status.st_size} bytes")
        self.downloads.append((request, fd, status.st_size))

    def piece(self) -> bytes | None:
        """The next message of the oldest download. A file that grows meanwhile is cut at the size it had."""
        if not self.downloads:
            return None
        request, fd, left = self.downloads.popleft()
        data = os.read(fd, min(TRANSFER, left))
        if data:
            self.downloads.append((request, fd, left - len(data)))
            return HEADER.pack(DATA, 0, request, len(data)) + data
        os.close(fd)
        body = pack(b"ok")
        return HEADER.pack(RESULT, 0, request, len(body)) + body

    def close(self) -> None:
        self.drop_upload()
        for _, fd, _ in self.downloads:
            os.close(fd)
        self.downloads.clear()
