"""The walk over a workspace, without a sandbox: the contract suite runs it on real ones."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.domain.artifacts import EntryKind
from service.domain.limits import MIB
from service.sandboxes.docker.collect import MAX_DEPTH, collect
from service.sandboxes.docker.storing import Storing
from service.testing.sandbox_bench import SMALL, MemorySink, by_path, open_descriptors


@pytest.fixture
def top(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "output").mkdir()
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.mark.fault(11)
def test_links_are_not_followed_even_to_files_below(tmp_path: Path, top: int) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "output" / "up").symlink_to("../secret")
    (tmp_path / "output" / "dir").symlink_to("..")
    sink = MemorySink()
    deliverable = collect(top, ["output"], SMALL, sink)
    assert {e.kind for e in deliverable.entries} == {EntryKind.SYMLINK}
    assert sink.moved == 0


@pytest.mark.fault(12)
@pytest.mark.parametrize("root", ["output/a", "link", "link/x", "file"])
def test_a_root_over_anything_but_directories_refuses(tmp_path: Path, top: int, root: str) -> None:
    (tmp_path / "output" / "a").symlink_to("/etc")
    (tmp_path / "link").symlink_to("output")
    (tmp_path / "output" / "x").mkdir()
    (tmp_path / "file").write_text("x")
    deliverable = collect(top, [root], SMALL, MemorySink())
    assert deliverable.refused
    assert not deliverable.entries


def test_a_file_that_grew_over_the_limit_is_not_kept(tmp_path: Path, top: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "output" / "f").write_bytes(bytes(3000))

    class Refusing(MemorySink):
        def store(self, fd: int, limit: int) -> tuple[str, int]:
            raise ValueError(f"over {limit}")

    entry = collect(top, ["output"], SMALL, Refusing()).entries[0]
    assert (entry.kind, entry.sha256) == (EntryKind.OVER_LIMIT, None)


def test_a_store_that_fails_is_not_hidden(tmp_path: Path, top: int) -> None:
    (tmp_path / "output" / "f").write_bytes(b"x")

    class Full(MemorySink):
        def store(self, fd: int, limit: int) -> tuple[str, int]:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        collect(top, ["output"], SMALL, Full())


def test_a_store_that_fails_in_the_middle_ends_the_walk_and_leaks_nothing(tmp_path: Path, top: int) -> None:
    for number in range(400):
        (tmp_path / "output" / f"{number:03}").write_text("x")
    before, stored = open_descriptors(), 0

    class Filling(MemorySink):
        def store(self, fd: int, limit: int) -> tuple[str, int]:
            nonlocal stored
            stored += 1
            if stored == 20:
                raise OSError(28, "No space left on device")
            return super().store(fd, limit)

    with pytest.raises(OSError, match="No space"):
        collect(top, ["output"], SMALL, Filling())
    assert stored < 60
    assert open_descriptors() == before


def test_many_files_are_stored_in_order_with_few_open_at_once(tmp_path: Path, top: int) -> None:
    for number in range(300):
        (tmp_path / "output" / f"{number:03}").write_text(str(number))
    most, before = 0, open_descriptors()

    class Slow(MemorySink):
        def store(self, fd: int, limit: int) -> tuple[str, int]:
            nonlocal most
            most = max(most, open_descriptors() - before)
            return super().store(fd, limit)

    found = collect(top, ["output"], SMALL, Slow())
    assert [e.path for e in found.entries] == [f"output/{n:03}" for n in range(300)]
    assert [e.sha256 for e in found.files] == [hashlib.sha256(str(n).encode()).hexdigest() for n in range(300)]
    assert most < 20
    assert open_descriptors() == before


@pytest.mark.fault(19)
def test_depth_is_bounded_and_descriptors_are_closed(tmp_path: Path, top: int) -> None:
    here = tmp_path / "output"
    for _ in range(MAX_DEPTH + 5):
        here /= "d"
    here.mkdir(parents=True)
    before = open_descriptors()
    deliverable = collect(top, ["output"], SMALL, MemorySink())
    assert open_descriptors() == before
    assert deliverable.entries[-1].kind is EntryKind.PATH_TOO_LONG
    assert len(deliverable.entries) == MAX_DEPTH


def test_listing_is_bounded(tmp_path: Path, top: int) -> None:
    limits = SMALL.model_copy(update={"deliverable_files": 10})
    for number in range(1100):
        (tmp_path / "output" / f"{number:04}").touch()
    deliverable = collect(top, ["output"], limits, MemorySink())
    assert len(deliverable.entries) == 1020
    assert len(deliverable.files) == 10
    assert deliverable.truncated


@pytest.mark.fault(89)
def test_a_sparse_terabyte_costs_no_read(tmp_path: Path, top: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "output" / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    opened: list[str] = []

    def noted(_self: Storing, _fd: int, path: str, _size: int, _mtime: float) -> None:
        opened.append(path)

    monkeypatch.setattr(Storing, "take", noted)
    entry = collect(top, ["output"], SMALL.model_copy(update={"deliverable_bytes": MIB}), MemorySink()).entries[0]
    assert (entry.kind, entry.size_bytes) == (EntryKind.OVER_LIMIT, 1 << 40)
    assert not opened


def test_order_and_digest_do_not_depend_on_creation_order(tmp_path: Path, top: int) -> None:
    for name in "cab":
        (tmp_path / "output" / name).write_text(name)
    first = collect(top, ["output"], SMALL, MemorySink())
    assert [e.path for e in first.entries] == ["output/a", "output/b", "output/c"]
    (tmp_path / "output" / "a").unlink()
    (tmp_path / "output" / "a").write_text("a")
    assert collect(top, ["output"], SMALL, MemorySink()).digest() == first.digest()


def test_paths_are_unique_and_reversible_over_roots(tmp_path: Path, top: int) -> None:
    (tmp_path / "other").mkdir()
    for root in ("output", "other"):
        (tmp_path / root / "same").write_text(root)
    assert set(by_path(collect(top, ["output", "other"], SMALL, MemorySink()))) == {"output/same", "other/same"}
