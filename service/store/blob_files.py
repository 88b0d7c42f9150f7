"""Files of the content store: made beside their place, made durable, then moved into it. No link is followed.

Layout: ``<root>/ab/cdef…`` (the digest's first two characters, the rest), ``<root>/tmp`` for files in the making,
``<root>/uploads`` for resumable uploads. A shard's directory is locked (flock) shared by whoever adds to it, exclusive
by the collector while it looks at a file and removes it.
"""

import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from service.domain.errors import Invalid, NotFound, Unavailable

CHUNK = 1 << 20
MODE = 0o444
"""Of blobs: trees of hard links are mounted into sandboxes, whose uid is another; the directories are closed to it."""
SHARED_MODE = 0o2770
"""Of directories that a second user of ours adds blobs to."""
RECENT_S = 43_200.0
"""Half of the time for which the collector leaves a blob alone that nothing refers to."""
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def check_digest(sha: str) -> str:
    """Return ``sha`` if it is 64 lower-case hex digits. Raises Invalid("invalid_digest")."""
    if not _DIGEST.fullmatch(sha):
        raise Invalid("invalid_digest", "a digest is 64 lower-case hexadecimal digits")
    return sha


@contextmanager
def storage_errors() -> Generator[None]:
    """Turn a full disk into Unavailable("storage_full"); other errors stay what they are."""
    try:
        yield
    except OSError as e:
        if e.errno in _FULL:
            raise Unavailable("storage_full", "the content store is full") from e
        raise


@contextmanager
def directory(path: Path, *, parent: int | None = None, create: bool = False, durable: bool = True) -> Generator[int]:
    """Open a directory, never through a link; make it (durably, or the caller does that) where ``create`` says so."""
    if create:
        with suppress(FileExistsError):
            os.mkdir(path, 0o750, dir_fd=parent)
            if parent is not None and durable:
                os.fsync(parent)
    fd = os.open(path, _DIRECTORY, dir_fd=parent)
    try:
        yield fd
    finally:
        os.close(fd)


class NewFile:
    """A file in the making. It is nowhere to be seen until :meth:`keep`, and gone if that never happens."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / "tmp" / secrets.token_hex(16)
        self._file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o640), "wb", 0)
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        self._hash.update(view)
        self.size += len(view)
        while view:
            view = view[self._file.write(view) or 0 :]

    def digest(self) -> str:
        return self._hash.hexdigest()

    def keep(self) -> str:
        """Make it durable, move it to its place, return its digest."""
        self.sync()
        sha = self.digest()
        install(self._root, self._path, sha)
        return sha

    def sync(self) -> Path:
        """Make it durable where it is; return where that is."""
        os.fchmod(self._file.fileno(), MODE)
        os.fsync(self._file.fileno())
        return self._path

    def park(self) -> Path:
        """Close it and leave it where it is, for whoever makes it a blob later; return where that is."""
        os.fchmod(self._file.fileno(), MODE)
        self._file.close()
        return self._path

    def discard(self) -> None:
        """Close it, and remove it if it was not kept."""
        self._file.close()
        self._path.unlink(missing_ok=True)


@contextmanager
def new_file(root: Path) -> Generator[NewFile]:
    """Raises Unavailable("storage_full")."""
    with storage_errors():
        file = NewFile(root)
        try:
            yield file
        finally:
            file.discard()


def install(root: Path, path: Path, sha: str) -> None:
    """Move the durable file ``path`` to the place of ``sha`` (one that is there only gets a new mtime)."""
    install_all(root, [(path, sha)])


def install_all(root: Path, files: Iterable[tuple[Path, str]], *, durable: bool = True) -> None:
    """As :func:`install` for many; a directory that several went into is made durable once, or by the caller."""
    with directory(root) as top, ExitStack() as opened:
        shards: dict[str, int] = {}
        changed: set[int] = set()
        for path, sha in files:
            if sha[:2] not in shards:
                shard = directory(Path(sha[:2]), parent=top, create=True, durable=durable)
                shards[sha[:2]] = opened.enter_context(shard)
                fcntl.flock(shards[sha[:2]], fcntl.LOCK_SH)
            if _place(path, shards[sha[:2]], sha):
                changed.add(shards[sha[:2]])
        for shard in changed if durable else ():
            os.fsync(shard)


def _place(path: Path, shard: int, sha: str) -> bool:
    """Return whether the directory changed."""
    if _fresh(shard, sha):
        path.unlink()
        return False
    os.rename(path, sha[2:], dst_dir_fd=shard)
    os.utime(sha[2:], dir_fd=shard, follow_symlinks=False)
    return True


def share(root: Path, gid: int) -> None:
    """Let the members of a group add blobs too. For root, and before others may make directories there."""
    shards = (root / f"{number:02x}" for number in range(256))
    for path in (root, root / "tmp", *shards):
        path.mkdir(mode=0o750, exist_ok=True)
        with directory(path) as fd:
            if os.fstat(fd).st_gid != gid or stat.S_IMODE(os.fstat(fd).st_mode) != SHARED_MODE:
                os.fchown(fd, -1, gid)
                os.fchmod(fd, SHARED_MODE)


def touch(root: Path, sha: str) -> bool:
    """Make the collector wait another 24 hours for this blob; False if there is none."""
    with (
        suppress(FileNotFoundError, NotADirectoryError),
        directory(root) as top,
        directory(Path(sha[:2]), parent=top) as shard,
    ):
        fcntl.flock(shard, fcntl.LOCK_SH)
        return _fresh(shard, sha)
    return False


def open_blob(root: Path, sha: str) -> BinaryIO:
    """Open a blob for reading. Raises NotFound("blob_not_found"), also for what is not a regular file of ours."""
    check_digest(sha)
    try:
        with directory(root) as top, directory(Path(sha[:2]), parent=top) as shard:
            fd = os.open(sha[2:], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=shard)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise NotFound("blob_not_found", f"no blob {sha}") from e
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotFound("blob_not_found", f"no blob {sha}")
    return os.fdopen(fd, "rb")


def old_blobs(root: Path, shard_name: str, older_than: float) -> list[str]:
    """Return the digests in one shard whose files were last touched before ``older_than`` (Unix seconds)."""
    try:
        with directory(root) as top, directory(Path(shard_name), parent=top) as fd, os.scandir(fd) as entries:
            return [shard_name + e.name for e in entries if e.stat(follow_symlinks=False).st_mtime < older_than]
    except (FileNotFoundError, NotADirectoryError):
        return []


def remove_checked(root: Path, sha: str, older_than: float) -> int:
    """Remove a blob that still is older than ``older_than``; return the bytes freed.

    Nobody can touch or add it between the look and the removal.
    """
    try:
        with directory(root) as top, directory(Path(sha[:2]), parent=top) as shard:
            fcntl.flock(shard, fcntl.LOCK_EX)
            found = os.stat(sha[2:], dir_fd=shard, follow_symlinks=False)
            if found.st_mtime >= older_than or stat.S_ISDIR(found.st_mode):
                return 0
            os.unlink(sha[2:], dir_fd=shard)
    except FileNotFoundError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _fresh(shard: int, sha: str) -> bool:
    """Touch the regular file at the place of ``sha``; anything else there is removed and counts as absent."""
    try:
        found = os.stat(sha[2:], dir_fd=shard, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):
        os.unlink(sha[2:], dir_fd=shard)
        return False
    try:
        os.utime(sha[2:], dir_fd=shard, follow_symlinks=False)
    except PermissionError:  # another user's of ours, whose file we may only replace
        return time.time() - found.st_mtime < RECENT_S
    return True
