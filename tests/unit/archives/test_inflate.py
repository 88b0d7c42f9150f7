"""Compressed streams: one member, complete, and never more than the limits let out."""

import gzip
import io
import json
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
import zstandard

from service.archives.contract import ArchiveKind, ArchiveLimits
from service.archives.reading import reader_for
from service.domain.errors import Invalid
from tests.unit.archives.bombs import empty_entries, gzip_bomb
from tests.unit.archives.reading import PACKERS, Counted, member, refusal, tar

GZIP = ArchiveKind.TAR_GZIP
ARCHIVE = tar(member("a", b"data" * 300))
COMPRESSED = [kind for kind in PACKERS if kind is not ArchiveKind.TAR]
MIB = 1 << 20
ROOT = Path(__file__).parents[3]


@pytest.mark.fault(29)
@pytest.mark.parametrize("kind", COMPRESSED)
def test_one_stream_and_nothing_else(kind: ArchiveKind) -> None:
    pack = PACKERS[kind]
    whole = pack(ARCHIVE)
    for data in (
        whole + pack(b""),
        whole + whole,
        pack(ARCHIVE[:512]) + pack(ARCHIVE[512:]),
        whole + b"x",
        whole + bytes(4),
    ):
        assert refusal(kind, data).type == "archive_malformed"
    for cut in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        assert refusal(kind, whole[:cut]).type == "archive_malformed"
    assert refusal(kind, ARCHIVE).type == "archive_malformed"


@pytest.mark.fault(29)
def test_a_wrong_checksum_is_refused() -> None:
    whole = bytearray(gzip.compress(ARCHIVE))
    whole[-5] ^= 1
    assert refusal(GZIP, bytes(whole)).type == "archive_malformed"


@pytest.mark.fault(26)
@pytest.mark.parametrize("kind", [GZIP, ArchiveKind.TAR_ZSTD])
def test_a_bomb_of_gigabytes_stops_early_in_little_memory(kind: ArchiveKind) -> None:
    """In a process of its own, whose memory is measured from outside of Python, too."""
    command = [sys.executable, "-m", "tests.unit.archives.bombs", kind]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    assert found["archive"] < 11 * MIB
    assert found["limit"] == "ratio"
    assert found["size"] < 400 * MIB
    assert found["after_kib"] < 100 * 1024
    assert found["after_kib"] - found["before_kib"] < 40 * 1024


@pytest.mark.fault(26)
def test_a_bomb_stops_at_the_total_and_at_the_members_size() -> None:
    bomb = gzip_bomb(64 * MIB)
    for limits, name, most in (
        (ArchiveLimits(total_bytes=16 * MIB), "total_bytes", 16 * MIB),
        (ArchiveLimits(member_bytes=16 * MIB), "member_bytes", 0),
        (ArchiveLimits(ratio=30, ratio_free_bytes=MIB), "ratio", MIB + 30 * len(bomb)),
    ):
        error, sink = _fed(GZIP, bomb, limits)
        assert (error.type, error.fields["limit"]) == ("archive_limit", name)
        assert sink.size <= most


@pytest.mark.fault(27)
def test_a_million_empty_entries_stop_at_the_count() -> None:
    data = empty_entries(1_000_000)
    started = time.perf_counter()
    error, sink = _fed(GZIP, data, ArchiveLimits(entries=900))
    assert (error.fields["limit"], sink.files) == ("entries", 900)
    assert time.perf_counter() - started < 5


def _fed(kind: ArchiveKind, data: bytes, limits: ArchiveLimits) -> tuple[Invalid, Counted]:
    """Feed all at once; return the refusal, and what came out until then."""
    sink = Counted()
    reader = reader_for(kind, sink, limits, io.BytesIO())
    with pytest.raises(Invalid) as refused:
        reader.feed(data)
    return refused.value, sink


def test_a_window_beyond_the_bound_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    out = io.BytesIO()
    with zstandard.ZstdCompressor(compression_params=parameters).stream_writer(out, closefd=False) as writer:
        writer.write(tar(member("a", bytes(1000)), format=tarfile.GNU_FORMAT))
    assert refusal(ArchiveKind.TAR_ZSTD, out.getvalue()).type == "archive_malformed"
