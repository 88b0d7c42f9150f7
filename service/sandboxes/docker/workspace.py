"""Workspaces: the one writable disk of a sandbox, with hard limits on bytes and inodes where the host can give them.

Two back ends: an ext4 image on a loop device (hard), and a plain directory (soft: only measured). The engine mounts a
local volume named like the sandbox; for collection the same bytes are mounted again, read-only, after death.
All functions block; the caller runs them in a thread.
"""

import os
import shutil
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from service.domain.limits import Limits
from service.sandboxes.contract import EngineError
from service.sandboxes.docker import loopdev, mounts
from service.sandboxes.docker.profile import UID
from service.sandboxes.docker.tools import run_tool

DIRECTORIES = ("output", ".home")
BYTES_PER_INODE = 2048
"""Least size per inode: the table takes an eighth of a disk at most, whatever was asked for."""
LAYOUT = 1
"""Raise when templates made by earlier versions must not be used any more."""


class WorkspaceStore(ABC):
    """One back end. ``home`` is the sandbox's own directory."""

    kind: ClassVar[str]
    soft: ClassVar[bool]

    @abstractmethod
    def create(self, home: Path, limits: Limits) -> dict[str, str]:
        """Make the workspace below ``home``; return the options of the engine's local volume."""

    @abstractmethod
    @contextmanager
    def opened(self, home: Path) -> Generator[int]:
        """Give a descriptor of the dead sandbox's workspace, read-only where the host can."""
        yield -1

    @abstractmethod
    def used_bytes(self, home: Path) -> int | None:
        """Return the disk space taken, from outside; no file inside is opened."""

    @abstractmethod
    def release(self, home: Path) -> None:
        """Give back mounts and devices; the directory itself is the caller's. Idempotent."""


class LoopWorkspaces(WorkspaceStore):
    kind = "loop_ext4"
    soft = False

    def __init__(self, templates: Path) -> None:
        self._templates = templates

    def create(self, home: Path, limits: Limits) -> dict[str, str]:
        image = home / "workspace.img"
        _copy_sparse(self._template(limits), image)
        device = loopdev.attach(image)
        # noinit_itable: otherwise the kernel zeroes the inode tables in the background, tens of MB per sandbox.
        return {"type": "ext4", "device": device, "o": "nosuid,nodev,noatime,noinit_itable"}

    @contextmanager
    def opened(self, home: Path) -> Generator[int]:
        target = home / "collect"
        target.mkdir(mode=0o700, exist_ok=True)
        mounts.unmount_below(target)
        device = loopdev.attach(home / "workspace.img")
        mounts.mount_read_only(device, target)
        try:
            with _directory(target) as fd:
                yield fd
        finally:
            mounts.unmount_below(target)

    def used_bytes(self, home: Path) -> int | None:
        """Return the image's allocated bytes: a high-water mark, as freed blocks are not given back."""
        try:
            return (home / "workspace.img").stat().st_blocks * 512
        except FileNotFoundError:
            return None

    def release(self, home: Path) -> None:
        mounts.unmount_below(home)
        for device in loopdev.devices_below(home):
            loopdev.detach(device)

    def _template(self, limits: Limits) -> Path:
        path = self._templates / f"ext4-v{LAYOUT}-{limits.disk_bytes}-{inodes_of(limits)}.img"
        if not path.exists():
            self._templates.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.draft")
            try:
                self._format(draft, limits)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
        return path

    def _format(self, draft: Path, limits: Limits) -> None:
        with draft.open("wb") as image:
            image.truncate(limits.disk_bytes)
        # No journal: a sandbox does not outlive its host's crash, and a read-only mount has nothing to replay.
        features = ["-O", "^has_journal,^resize_inode", "-m", "0", "-N", str(inodes_of(limits))]
        extended = f"lazy_itable_init=1,nodiscard,root_owner={UID}:{UID}"
        run_tool(["mkfs.ext4", "-q", "-F", *features, "-E", extended, str(draft)])
        target = draft.with_suffix(".mnt")
        target.mkdir(mode=0o700)
        try:
            run_tool(["mount", "-t", "ext4", "-o", "loop,nosuid,nodev,noinit_itable", str(draft), str(target)])
            (target / "lost+found").rmdir()
            _lay_out(target)
        finally:
            mounts.unmount_below(target)
            target.rmdir()


class PlainWorkspaces(WorkspaceStore):
    """No limit of its own: whoever drives the sandbox compares ``used_bytes`` with the limit."""

    kind = "directory"
    soft = True

    def create(self, home: Path, limits: Limits) -> dict[str, str]:  # noqa: ARG002 - nothing to set a limit with
        tree = home / "workspace"
        if not tree.exists():
            tree.mkdir(mode=0o755)
            os.chown(tree, UID, UID)
            _lay_out(tree)
        return {"type": "none", "device": str(tree), "o": "bind,nosuid,nodev"}

    @contextmanager
    def opened(self, home: Path) -> Generator[int]:
        with _directory(home / "workspace") as fd:
            yield fd

    def used_bytes(self, home: Path) -> int | None:
        """Return the sum of allocated blocks over the tree, by descriptors, links never followed."""
        try:
            with _directory(home / "workspace") as fd:
                return sum(
                    _blocks(name, parent) for _, dirs, files, parent in os.fwalk(dir_fd=fd) for name in dirs + files
                )
        except FileNotFoundError:
            return None

    def release(self, home: Path) -> None:
        mounts.unmount_below(home)


def probe(data_dir: Path) -> WorkspaceStore:
    """Return the best back end that works here: tried for real, at start."""
    store = LoopWorkspaces(data_dir / "templates")
    trial = data_dir / "sandboxes" / f".probe-{os.getpid()}"
    shutil.rmtree(trial, ignore_errors=True)
    trial.mkdir(mode=0o700, parents=True)
    try:
        store.create(trial, Limits(disk_bytes=16 << 20, inodes=1000))
        with store.opened(trial) as fd:
            os.stat("output", dir_fd=fd)
    except (EngineError, OSError):
        return PlainWorkspaces()
    else:
        return store
    finally:
        store.release(trial)
        shutil.rmtree(trial, ignore_errors=True)


def inodes_of(limits: Limits) -> int:
    """Return how many inodes a file system of this size is made with: their table takes 256 bytes each of the disk."""
    return min(limits.inodes, limits.disk_bytes // BYTES_PER_INODE)


def _blocks(name: str, parent: int) -> int:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False).st_blocks * 512
    except FileNotFoundError:  # the tree of a live sandbox changes underneath
        return 0


def _lay_out(tree: Path) -> None:
    for name in DIRECTORIES:
        (tree / name).mkdir(mode=0o755)
        os.chown(tree / name, UID, UID)


@contextmanager
def _directory(path: Path) -> Generator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _copy_sparse(source: Path, target: Path) -> None:
    """Copy only what is not a hole: 160 KiB of a 10 GiB template."""
    with source.open("rb") as src, target.open("xb") as dst:
        os.fchmod(dst.fileno(), 0o600)
        size = os.fstat(src.fileno()).st_size
        dst.truncate(size)
        start = 0
        while start < size:
            try:
                start = os.lseek(src.fileno(), start, os.SEEK_DATA)
            except OSError:  # ENXIO: only a hole is left
                return
            end = os.lseek(src.fileno(), start, os.SEEK_HOLE)
            while start < end:
                start += os.copy_file_range(src.fileno(), dst.fileno(), end - start, start, start)
