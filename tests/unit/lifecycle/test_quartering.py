"""The first quarter of a deliverable."""

import hashlib
from pathlib import Path

import pytest

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.errors import NotFound
from service.lifecycle.controls.altering import quartered, whole
from service.store.blobs import BlobStore


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path)


def entry(blobs: BlobStore, path: str, data: bytes) -> ArtifactEntry:
    sha, size = blobs.store_bytes(data)
    return ArtifactEntry(path, EntryKind.FILE, size, sha)


def test_texts_are_cut_by_characters_and_other_files_kept_by_bytes(blobs: BlobStore) -> None:
    entries = [
        ArtifactEntry("output", EntryKind.DIRECTORY),
        entry(blobs, "output/a.md", "äöüß12345678".encode()),
        entry(blobs, "output/c.png", b"\xff" * 10),
        entry(blobs, "output/b.png", b"\xfe" * 20),
        entry(blobs, "output/d.png", b"\xfd" * 90),
        entry(blobs, "output/short.txt", b"abc"),
        entry(blobs, "output/nul.bin", b"a\0b"),
        ArtifactEntry("output/link", EntryKind.SYMLINK),
    ]
    altered = quartered(entries, blobs)
    found = {f.path: blobs.read_bytes(f.sha256, 100) for f in altered.files}
    assert found == {"output/a.md": "äöü".encode(), "output/b.png": b"\xfe" * 20, "output/c.png": b"\xff" * 10}
    assert altered.how == "2 texts cut to a quarter, 2 of 4 other files kept"
    assert altered.made == ((hashlib.sha256("äöü".encode()).hexdigest(), 6),)
    assert quartered(entries, blobs) == altered


def test_one_file_of_no_text_leaves_nothing(blobs: BlobStore) -> None:
    assert quartered([entry(blobs, "output/a.docx", b"PK\x03\x04\xff")], blobs).files == ()


def test_a_lost_file_is_no_quarter(blobs: BlobStore) -> None:
    with pytest.raises(NotFound):
        quartered([ArtifactEntry("output/a.md", EntryKind.FILE, 3, "0" * 64)], blobs)


def test_whole_takes_files_only(blobs: BlobStore) -> None:
    entries = [entry(blobs, "output/a.md", b"abc"), ArtifactEntry("output/link", EntryKind.SYMLINK)]
    assert [f.path for f in whole(entries, "").files] == ["output/a.md"]
