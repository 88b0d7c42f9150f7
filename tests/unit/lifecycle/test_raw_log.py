import os
from pathlib import Path

import pytest
import zstandard

from service.lifecycle import raw_log
from service.lifecycle.raw_log import Spool
from service.store.blobs import BlobStore


def unpacked(blobs: BlobStore, digest: str) -> bytes:
    with blobs.open(digest) as file:
        return zstandard.ZstdDecompressor().stream_reader(file).read()


def test_a_sealed_log_is_the_stream_and_may_be_sealed_again(tmp_path: Path) -> None:
    spool, blobs = Spool(tmp_path / "spool"), BlobStore(tmp_path / "blobs")
    data = os.urandom(3 << 20)
    spool.write("stdout", 0, data[:1000])
    spool.write("stdout", 1000, data[1000:])
    spool.write("stdout", len(data), b"written by a worker that died before its commit")
    sealed = spool.seal("stdout", len(data), blobs)
    assert sealed == spool.seal("stdout", len(data), blobs)
    assert sealed.log_bytes == len(data)
    assert unpacked(blobs, sealed.sha256) == data
    spool.remove()
    assert not (tmp_path / "spool").exists()


@pytest.mark.fault(90)
def test_past_its_limit_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_log, "RAW_LOG_BYTES", 10)
    spool, blobs = Spool(tmp_path / "spool"), BlobStore(tmp_path / "blobs")
    spool.write("stdout", 0, b"123456")
    spool.write("stdout", 6, b"789abc")
    spool.write("stdout", 12, b"def")
    assert (tmp_path / "spool" / "stdout").stat().st_size == 10
    assert unpacked(blobs, spool.seal("stdout", 15, blobs).sha256) == b"123456789a"


def test_a_link_in_place_of_a_spool_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "stdout").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        Spool(tmp_path / "spool").write("stdout", 0, b"x")
    assert not (tmp_path / "elsewhere").exists()
