"""The content store: whole or not at all, resumable, never through a link."""

import asyncio
import errno
import hashlib
import os
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from service.domain.errors import Conflict, Invalid, NotFound, TooLarge, Unavailable
from service.store import blob_files
from service.store.blobs import BlobStore

DATA = bytes(range(256)) * 1000
SHA = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


async def stream(chunks: Iterable[bytes], fail: bool = False) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
    if fail:
        raise ConnectionResetError


def pieces(data: bytes, size: int = 65_536) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


def visible(store: BlobStore) -> list[str]:
    shards = [p for p in store.root.iterdir() if len(p.name) == 2]
    return sorted(shard.name + p.name for shard in shards for p in shard.iterdir())


def leftovers(store: BlobStore) -> list[Path]:
    return list((store.root / "tmp").iterdir())


async def test_the_three_ways_in_give_the_same_file(store: BlobStore, tmp_path: Path) -> None:
    assert await store.put_stream(stream(pieces(DATA)), SHA) == (SHA, len(DATA))
    assert store.store_bytes(DATA) == (SHA, len(DATA))
    (tmp_path / "f").write_bytes(DATA)
    with (tmp_path / "f").open("rb") as file:
        file.seek(77)
        assert store.store(file.fileno(), len(DATA)) == (SHA, len(DATA))
    assert visible(store) == [SHA]
    assert store.read_bytes(SHA) == DATA == store.path(SHA).read_bytes()
    assert (store.size(SHA), store.exists(SHA)) == (len(DATA), True)
    assert leftovers(store) == []
    assert store.store_bytes(b"") == (hashlib.sha256(b"").hexdigest(), 0)


async def test_limits_and_wrong_digests_leave_nothing(store: BlobStore, tmp_path: Path) -> None:
    with pytest.raises(TooLarge):
        await store.put_stream(stream(pieces(DATA)), limit=len(DATA) - 1)
    with pytest.raises(Invalid, match="digest"):
        await store.put_stream(stream([b"other"]), SHA)
    with pytest.raises(ConnectionResetError):
        await store.put_stream(stream(pieces(DATA), fail=True))
    (tmp_path / "f").write_bytes(DATA)
    with (tmp_path / "f").open("rb") as file, pytest.raises(ValueError, match="more than"):
        store.store(file.fileno(), len(DATA) - 1)
    for odd in ("", "..", "A" * 64, "../" + "a" * 61, SHA + "\n"):
        with pytest.raises(Invalid):
            store.path(odd)
    assert visible(store) == leftovers(store) == []


@pytest.mark.fault(117)
@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
@pytest.mark.parametrize("number", [1, 2, 3])
async def test_a_full_disk_at_any_write_leaves_nothing_torn(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    kept, _ = store.store_bytes(b"older")
    calls = 0

    def full(real: Any) -> Any:
        def failing(*args: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls >= number:
                raise OSError(errno.ENOSPC, "no space")
            return real(*args, **options)

        return failing

    if call == "write":
        monkeypatch.setattr(blob_files.NewFile, "write", full(blob_files.NewFile.write))
    else:
        monkeypatch.setattr(os, call, full(getattr(os, call)))
    with suppress(Unavailable):  # later calls than there are do not fail
        await store.put_stream(stream(pieces(DATA)), SHA)
    monkeypatch.undo()
    assert leftovers(store) == []
    for sha in visible(store):
        assert hashlib.sha256(store.read_bytes(sha)).hexdigest() == sha
    assert store.read_bytes(kept) == b"older"
    assert (await store.put_stream(stream(pieces(DATA)), SHA))[0] == SHA


@pytest.mark.fault(123)
async def test_an_upload_aborted_at_each_piece_is_invisible_and_goes_on(store: BlobStore) -> None:
    parts = pieces(DATA)
    for i, part in enumerate(parts[:-1]):
        at = await store.upload_offset("p", SHA)
        assert at == i * 65_536
        with pytest.raises(ConnectionResetError):
            await store.upload_append("p", SHA, at, stream([part], fail=True), total=len(DATA))
        assert visible(store) == []
        assert not store.exists(SHA)
    at = await store.upload_offset("p", SHA)
    assert await store.upload_offset("other project", SHA) == 0
    assert await store.upload_append("p", SHA, at, stream([parts[-1]]), total=len(DATA))
    assert store.read_bytes(SHA) == DATA
    assert await store.upload_offset("p", SHA) == 0
    assert list((store.root / "uploads").iterdir()) == []


async def test_upload_conflicts(store: BlobStore) -> None:
    assert not await store.upload_append("p", SHA, 0, stream([DATA[:10]]), total=len(DATA))
    with pytest.raises(Conflict) as caught:
        await store.upload_append("p", SHA, 11, stream([b"x"]), total=len(DATA))
    assert (caught.value.type, caught.value.fields["offset"]) == ("upload_offset", 10)
    with pytest.raises(TooLarge):
        await store.upload_append("p", SHA, 10, stream([b"x" * 91]), total=100)
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"a"
        begun.set()
        await go.wait()

    first = asyncio.create_task(store.upload_append("p", SHA, 10, slow(), total=len(DATA)))
    await begun.wait()
    with pytest.raises(Conflict, match="another"):
        await store.upload_append("p", SHA, 11, stream([b"x"]), total=len(DATA))
    go.set()
    assert not await first


async def test_a_wrong_upload_is_forgotten(store: BlobStore) -> None:
    with pytest.raises(Invalid, match="digest"):
        await store.upload_append("p", SHA, 0, stream([b"wrong"]), total=5)
    assert await store.upload_offset("p", SHA) == 0
    assert visible(store) == []


async def test_links_are_not_followed(store: BlobStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(DATA)
    store.store_bytes(b"x")
    (store.root / SHA[:2]).mkdir(exist_ok=True)
    store.path(SHA).symlink_to(secret)
    with pytest.raises(NotFound):
        store.open(SHA)
    assert not store.exists(SHA)
    assert store.store_bytes(DATA)[0] == SHA
    assert not store.path(SHA).is_symlink()
    assert secret.read_bytes() == DATA
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = hashlib.sha256(b"other").hexdigest()
    (elsewhere / other[2:]).write_bytes(b"other")
    (store.root / other[:2]).symlink_to(elsewhere)
    with pytest.raises(NotFound):
        store.open(other)
    with pytest.raises(OSError, match="directory"):
        store.store_bytes(b"other")
    upload = store.root / "uploads" / hashlib.sha256(f"p/{SHA}".encode()).hexdigest()
    upload.symlink_to(secret)
    with pytest.raises(OSError, match="symbolic"):
        await store.upload_append("p", SHA, 0, stream([b"x"]), total=1)
    assert secret.read_bytes() == DATA


def test_fifos_and_directories_in_the_place_of_a_blob(store: BlobStore) -> None:
    (store.root / SHA[:2]).mkdir()
    os.mkfifo(store.path(SHA))
    with pytest.raises(NotFound):
        store.open(SHA)
    assert store.store_bytes(DATA)[0] == SHA


def test_many_writers_of_one_blob(store: BlobStore) -> None:
    writers = [threading.Thread(target=store.store_bytes, args=(DATA,)) for _ in range(16)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert visible(store) == [SHA]
    assert store.read_bytes(SHA) == DATA
    assert leftovers(store) == []


async def test_storing_again_makes_a_blob_young(store: BlobStore) -> None:
    """The collector must not take what somebody has just been told is there."""
    store.store_bytes(DATA)
    ways = [lambda: store.store_bytes(DATA), lambda: store.exists(SHA)]
    for way in ways:
        os.utime(store.path(SHA), (0, 0))
        way()
        assert store.path(SHA).stat().st_mtime > 1e9
    os.utime(store.path(SHA), (0, 0))
    await store.put_stream(stream([DATA]), SHA)
    assert store.path(SHA).stat().st_mtime > 1e9
