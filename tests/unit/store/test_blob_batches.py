"""Small blobs stored together: durable before they are seen, all or none."""

import errno
import hashlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from service.domain.errors import Invalid, Unavailable
from service.store import blob_files
from service.store.blobs import BlobStore

CONTENTS = [b"content %d" % n for n in range(40)] + [b""]
BLOBS = {hashlib.sha256(data).hexdigest(): data for data in CONTENTS}


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def names(store: BlobStore) -> list[str]:
    return sorted(p.parent.name + p.name for p in store.root.glob("??/*"))


def test_all_are_there_and_nothing_else(store: BlobStore) -> None:
    there, data = next(iter(BLOBS.items()))
    store.store_bytes(data)
    os.utime(store.path(there), (1, 1))
    store.store_many(BLOBS)
    assert names(store) == sorted(BLOBS)
    assert all(store.read_bytes(sha) == data for sha, data in BLOBS.items())
    assert list((store.root / "tmp").iterdir()) == []
    assert store.path(there).stat().st_mtime > 1
    assert store.path(there).stat().st_mode & 0o777 == blob_files.MODE


def test_one_wrong_digest_refuses_all(store: BlobStore) -> None:
    with pytest.raises(Invalid) as caught:
        store.store_many({**BLOBS, "0" * 64: b"zero"})
    assert caught.value.type == "wrong_digest"
    assert names(store) == []


def test_a_file_is_durable_before_it_is_in_place_and_its_directory_before_the_end(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[tuple[str, int]] = []

    def noted(name: str) -> None:
        real: Any = getattr(os, name)

        def call(*args: Any, **more: Any) -> Any:
            found = real(*args, **more)
            at = args[0] if isinstance(args[0], int) else store.root / "tmp" / str(args[0])
            order.append((name, os.fstat(at).st_ino if isinstance(at, int) else 0))
            return found

        monkeypatch.setattr(os, name, call)

    noted("fsync")
    noted("rename")
    store.store_many(BLOBS)
    first_rename = next(i for i, (name, _) in enumerate(order) if name == "rename")
    last_rename = max(i for i, (name, _) in enumerate(order) if name == "rename")
    synced = {inode for name, inode in order[:first_rename] if name == "fsync"}
    assert {store.path(sha).stat().st_ino for sha in BLOBS} <= synced
    after = {inode for name, inode in order[last_rename:] if name == "fsync"}
    assert {store.path(sha).parent.stat().st_ino for sha in BLOBS} == after


@pytest.mark.fault(117)
@pytest.mark.parametrize("call", ["write", "fsync", "rename", "mkdir"])
@pytest.mark.parametrize("at", [0, 1, 7])
def test_a_full_disk_leaves_nothing_half(store: BlobStore, monkeypatch: pytest.MonkeyPatch, call: str, at: int) -> None:
    left = [at]

    def full(real: Any) -> Any:
        def fail(*args: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "full")
            return real(*args, **more)

        return fail

    if call == "write":
        monkeypatch.setattr(blob_files.NewFile, "write", full(blob_files.NewFile.write))
    else:
        monkeypatch.setattr(os, call, full(getattr(os, call)))
    with pytest.raises(Unavailable) as caught:
        store.store_many(BLOBS)
    assert caught.value.type == "storage_full"
    monkeypatch.undo()
    assert list((store.root / "tmp").iterdir()) == []
    assert all(store.read_bytes(sha) == BLOBS[sha] for sha in names(store))
    store.store_many(BLOBS)
    assert names(store) == sorted(BLOBS)


def test_no_file_is_closed_under_a_thread_that_is_at_it(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first, going, closed = threading.Lock(), threading.Event(), list[bool]()

    def sync(file: blob_files.NewFile) -> Path:
        if not first.acquire(blocking=False):
            going.set()
            time.sleep(0.3)
            closed.append(file._file.closed)  # pyright: ignore[reportPrivateUsage]
            return file._path  # pyright: ignore[reportPrivateUsage]
        assert going.wait(5)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(blob_files.NewFile, "sync", sync)
    with pytest.raises(Unavailable):
        store.store_many(dict([*BLOBS.items()][:3]))
    assert set(closed) == {False}
    assert names(store) == []
    assert list((store.root / "tmp").iterdir()) == []
