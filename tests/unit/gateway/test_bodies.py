"""Kept bodies: read back as they were, cheap along a conversation, bounded, marked where they were cut."""

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.domain.errors import NotFound
from service.gateway.body_keeper import BodyKeeper, BodyLimits, Kept
from service.store.blobs import BlobStore
from service.store.request_bodies import CHAIN, BodyUnreadable, pack, read_body


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


@pytest.fixture
def keeper(blobs: BlobStore) -> Iterator[BodyKeeper]:
    keeper = BodyKeeper(blobs)
    yield keeper
    keeper.close()


def _conversation(turns: int) -> list[bytes]:
    chance = random.Random(7)
    words = [hashlib.md5(str(i).encode()).hexdigest()[: 3 + i % 7] for i in range(3000)]
    messages: list[dict[str, str]] = []
    bodies: list[bytes] = []
    for _ in range(turns):
        messages.append({"role": "user", "content": " ".join(chance.choices(words, k=300))})
        bodies.append(json.dumps({"model": "m", "messages": messages}).encode())
    return bodies


async def test_a_conversation_costs_little_more_than_its_last_body(blobs: BlobStore, keeper: BodyKeeper) -> None:
    bodies, stored, deepest = _conversation(60), dict[str, int](), 0
    kept: list[Kept] = []
    for body in bodies:
        kept.append(await keeper.keep("run_1", "m", body, b"ok", 2))
        stored |= kept[-1].blobs
        deepest = max(deepest, len(kept[-1].blobs))
    alone = sum(len(pack(body)) for body in bodies)
    assert sum(stored.values()) < alone / 6
    assert deepest == CHAIN + 1
    for body, one in zip(bodies, kept, strict=True):
        assert one.request is not None
        found = read_body(blobs, one.request)
        assert (found.data, found.size, found.cut) == (body, len(body), False)


async def test_every_request_needs_all_that_it_was_compressed_against(blobs: BlobStore, keeper: BodyKeeper) -> None:
    last = Kept()
    for body in _conversation(5):
        last = await keeper.keep("run_1", "m", body, b"", 0)
    assert last.request is not None
    for sha in {path.parent.name + path.name for path in blobs.root.glob("??/*")} - set(last.blobs):
        blobs.path(sha).unlink()
    assert json.loads(read_body(blobs, last.request).data)["messages"][4]
    assert len(last.blobs) == 6


async def test_equal_bodies_of_two_runs_are_one_blob(keeper: BodyKeeper) -> None:
    one = await keeper.keep("run_1", "m", b'{"a":1}', b"x", 1)
    two = await keeper.keep("run_2", "m", b'{"a":1}', b"x", 1)
    assert one == two


async def test_long_bodies_are_cut_and_say_so(blobs: BlobStore) -> None:
    keeper = BodyKeeper(blobs, BodyLimits(body_bytes=1000))
    for _ in range(2):
        kept = await keeper.keep("run_1", "m", b"a" * 5000, b"b" * 1000, 7000)
        assert kept.request is not None
        assert kept.response is not None
        request, response = read_body(blobs, kept.request), read_body(blobs, kept.response)
        assert (request.data, request.size, request.cut) == (b"a" * 1000, 5000, True)
        assert (response.data, response.size, response.cut) == (b"b" * 1000, 7000, True)
    keeper.close()


async def test_a_run_keeps_no_more_than_its_share(blobs: BlobStore) -> None:
    keeper = BodyKeeper(blobs, BodyLimits(run_bytes=4000))
    noise = random.Random(1)
    kept = [await keeper.keep("run_1", "m", noise.randbytes(1500), b"", 0) for _ in range(6)]
    assert [one.request is not None for one in kept] == [True, True, True, False, False, False]
    assert (await keeper.keep("run_2", "m", b"x", b"", 0)).request is not None
    keeper.close()


async def test_memory_of_predecessors_is_bounded(blobs: BlobStore) -> None:
    keeper = BodyKeeper(blobs)
    for n in range(300):
        await keeper.keep(f"run_{n}", "m", bytes(1 << 20), b"", 0)
    held = getattr(keeper, "_bases")  # noqa: B009
    assert sum(len(base.data) for base in held.values()) <= 64 << 20
    keeper.forget("run_299")
    assert all(key[0] != "run_299" for key in held)
    keeper.close()


def test_what_is_no_body_of_ours_is_told(blobs: BlobStore) -> None:
    good = pack(b"hello")
    lying = good.replace(b'"kept":5', b'"kept":4')
    huge = pack(bytes(1 << 20)).replace(b'"kept":1048576', b'"kept":10').replace(b'"size":1048576', b'"size":10')
    own = blobs.store_bytes(b"x")[0]
    looping = json.dumps({"v": 1, "size": 1, "kept": 1, "base": own}).encode() + b"\n"
    for data in (b"", b"hello", good[:-3], lying, huge, b"[]\n", looping, good.replace(b'"v":1', b'"v":2')):
        with pytest.raises(BodyUnreadable):
            read_body(blobs, blobs.store_bytes(data)[0])
    with pytest.raises(NotFound):
        read_body(blobs, "0" * 64)
    assert read_body(blobs, blobs.store_bytes(pack(b""))[0]).data == b""
