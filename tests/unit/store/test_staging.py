"""Files that become blobs together: durable before they are to be seen, and nothing of them otherwise."""

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.domain.errors import TooLarge, Unavailable
from service.store import durability, staging
from service.store.blob_files import MODE
from service.store.blobs import BlobStore
from service.store.staging import FEW, Staging


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def _visible(store: BlobStore) -> list[str]:
    return [f"{p.parent.name}{p.name}" for p in store.root.glob("[0-9a-f][0-9a-f]/*")]


def _left(store: BlobStore) -> list[Path]:
    return list((store.root / "tmp").iterdir())


def _fill(open: Staging, count: int) -> list[str]:
    """Return the digests of the files that it stages."""
    for n in range(count):
        open.begin()
        open.write(b"content ")
        open.write(str(n).encode())
        open.end()
    return sorted(hashlib.sha256(b"content %d" % n).hexdigest() for n in range(count))


@pytest.mark.parametrize("count", [1, FEW, FEW + 1, 600])
def test_all_or_nothing(store: BlobStore, count: int) -> None:
    with store.staging() as open:
        _fill(open, count)
    assert _visible(store) == _left(store) == []
    with store.staging() as open:
        digests = _fill(open, count)
        open.keep_all()
        assert sorted(_visible(store)) == digests
    assert sorted(_visible(store)) == digests
    assert _left(store) == []
    assert {store.path(d).stat().st_mode & 0o7777 for d in digests} == {MODE}
    assert all(hashlib.sha256(store.read_bytes(d)).hexdigest() == d for d in digests[:5])


@pytest.mark.parametrize("count", [3, FEW + 5])
def test_durable_before_it_is_to_be_seen(store: BlobStore, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    seen: list[int] = []

    def file_system(fd: int) -> None:
        seen.append(len(_visible(store)))
        durability.sync_file_system(fd)

    def one(path: Path) -> None:
        seen.append(len(_visible(store)))
        durability.sync_file(path)

    monkeypatch.setattr(staging, "sync_file_system", file_system)
    monkeypatch.setattr(staging, "sync_file", one)
    with store.staging() as open:
        _fill(open, count)
        open.keep_all()
    assert seen == ([0, count] if count > FEW else [0] * count)


def test_the_same_content_is_one_blob_also_where_it_was_there(store: BlobStore) -> None:
    sha, _ = store.store_bytes(b"content 0")
    os.utime(store.path(sha), (1, 1))
    with store.staging() as open:
        _fill(open, FEW + 3)
        open.begin()
        open.write(b"content 1")
        open.end()
        open.keep_all()
    assert len(_visible(store)) == FEW + 3
    assert store.path(sha).stat().st_mtime > 1
    assert _left(store) == []


def test_only_what_is_chosen_is_kept(store: BlobStore) -> None:
    with store.staging() as open:
        open.begin()
        open.write(b"read me")
        chosen = open.end()
        _fill(open, 3)
        assert open.read(chosen, 7) == b"read me"
        with pytest.raises(TooLarge):
            open.read(chosen, 6)
        open.keep([chosen])
    assert _visible(store) == [chosen.sha256]


def test_takes_open_files_up_to_a_limit(store: BlobStore, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 3_000_000)
    with (tmp_path / "f").open("rb") as file, store.staging() as open:
        for limit in (0, 2_999_999):
            with pytest.raises(ValueError, match="more than"):
                open.store(file.fileno(), limit)
        assert _left(store) == []
        sha, size = open.store(file.fileno(), 3_000_000)
        open.keep_all()
    assert (sha, size) == (hashlib.sha256(b"x" * 3_000_000).hexdigest(), 3_000_000)
    assert _visible(store) == [sha]


def _keep(store: BlobStore, count: int) -> None:
    with store.staging() as open:
        _fill(open, count)
        open.keep_all()


@pytest.fixture(params=["file", "syncfs first", "syncfs second", "rename"])
def full_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    calls = 0

    def full(*args: object, **options: object) -> None:
        nonlocal calls
        calls += 1
        if request.param != "syncfs second" or calls == 2:
            raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        if request.param == "rename":
            patch.setattr(os, "rename", full)
        elif request.param == "file":
            patch.setattr(staging.NewFile, "write", full)
        else:
            patch.setattr(staging, "sync_file_system", full)
        yield request.param


@pytest.mark.fault(117)
def test_a_full_disk_leaves_nothing_torn(store: BlobStore, full_disk: str) -> None:
    with pytest.raises(Unavailable, match="full"):
        _keep(store, FEW + 4)
    assert _left(store) == []
    for sha in _visible(store):
        assert full_disk == "syncfs second"
        assert hashlib.sha256(store.read_bytes(sha)).hexdigest() == sha


def test_whoever_closes_wins(store: BlobStore) -> None:
    with store.staging() as open:
        _fill(open, 2)
        open.begin()
    for late in (open.begin, lambda: open.write(b"x"), open.end, open.keep_all):
        with pytest.raises(RuntimeError, match="closed"):
            late()
    assert _left(store) == []


def test_a_failing_disk_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        durability.sync_file_system(-1)
