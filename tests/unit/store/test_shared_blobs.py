"""A second user of ours adds blobs to a store that is root's."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from service.store import blob_files
from service.store.blobs import BlobStore

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="changes the uid")
UID = GID = 64321
OLD, RECENT = b"an old blob", b"a recent blob"


def as_other(work: Callable[[], None]) -> int:
    """Do the work in a child of another user and group; return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(GID)
            os.setuid(UID)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and not folder.stat().st_mode & 0o001:
            folder.chmod(0o711)
    blobs = BlobStore(tmp_path / "blobs")
    for data, age in ((OLD, 80_000), (RECENT, 60)):
        path = blobs.path(blobs.store_bytes(data)[0])
        then = path.stat().st_mtime - age
        os.utime(path, (then, then))
    blob_files.share(blobs.root, GID)
    return blobs.root


def test_members_of_the_group_add_read_and_repeat(root: Path) -> None:
    def work() -> None:
        blobs = BlobStore(root)
        mine, _ = blobs.store_bytes(b"mine")
        assert blobs.read_bytes(mine) == b"mine"
        blobs.store_many({hashlib.sha256(b"many").hexdigest(): b"many"})
        for data in (OLD, RECENT):
            sha, _ = blobs.store_bytes(data)
            assert blobs.read_bytes(sha) == data

    assert as_other(work) == 0
    blobs = BlobStore(root)
    assert blobs.read_bytes(hashlib.sha256(b"many").hexdigest()) == b"many"
    old = blobs.path(hashlib.sha256(OLD).hexdigest()).stat()
    assert old.st_uid == UID, "what it could not touch and the collector might take is written anew"
    assert blobs.path(hashlib.sha256(RECENT).hexdigest()).stat().st_uid == 0
    assert blobs.store_bytes(b"mine")[1] == 4, "and root goes on"


def test_nobody_else_does(root: Path) -> None:
    def look() -> None:
        list(root.iterdir())

    assert as_other(look) == 0
    os.chown(root, 0, 0)
    assert as_other(look) == 1
    blob_files.share(root, GID)
    assert root.stat().st_mode & 0o7777 == blob_files.SHARED_MODE
    assert as_other(look) == 0
