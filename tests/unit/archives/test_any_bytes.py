"""Whatever the bytes: files of clean names, or Invalid. No other error, no file elsewhere, no more than the limits."""

import gzip
import io
import lzma
import random
import zipfile

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.archives.contract import ArchiveKind, ArchiveLimits
from service.domain.errors import Invalid
from service.domain.paths import check_relative_path
from tests.unit.archives.reading import PACKERS, Kept, member, padded, pax, read, tar, zipped

LIMITS = ArchiveLimits(total_bytes=1 << 20, member_bytes=1 << 18, entries=50, ratio_free_bytes=1 << 18)
FILES = [("a/b.txt", b"text" * 200), ("a/c", b""), ("d", bytes(range(256)))]
VALID: dict[ArchiveKind, bytes] = {
    kind: pack(tar(*[member(n, d) for n, d in FILES], member("p" * 120, b"long"))) for kind, pack in PACKERS.items()
} | {ArchiveKind.ZIP: zipped(FILES)}
QUIET = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _taken_or_refused(kind: ArchiveKind, data: bytes, piece: int = 4096) -> None:
    found = _outcome(kind, data, piece)
    if isinstance(found, Invalid):
        assert found.type.startswith("archive_")
        assert str(found.fields.get("entry", "")).isprintable()
        return
    assert sum(map(len, found.files.values())) <= LIMITS.total_bytes
    assert found.files.keys() == found.entries.keys()
    for path, entry in found.entries.items():
        assert check_relative_path(path) == path
        assert (entry.mode in (0o644, 0o755), 0 <= entry.mtime < 2.6e11) == (True, True)


def _utf8(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _outcome(kind: ArchiveKind, data: bytes, piece: int) -> Kept | Invalid:
    try:
        return read(kind, data, LIMITS, piece)
    except Invalid as error:
        return error


@pytest.mark.parametrize("kind", ArchiveKind)
@QUIET
@given(data=st.binary(max_size=3000), piece=st.integers(1, 3000))
def test_noise(kind: ArchiveKind, data: bytes, piece: int) -> None:
    _taken_or_refused(kind, data, piece)
    if kind in PACKERS:
        _taken_or_refused(kind, PACKERS[kind](data), piece)


@pytest.mark.parametrize("kind", ArchiveKind)
@QUIET
@given(
    edits=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4
    ),
    cut=st.none() | st.floats(0, 1),
)
def test_archives_with_bytes_changed(kind: ArchiveKind, edits: list[tuple[float, bytes]], cut: float | None) -> None:
    data = bytearray(VALID[kind])
    for where, new in edits:
        at = int(where * len(data))
        data[at : at + len(new)] = new
    _taken_or_refused(kind, bytes(data[: None if cut is None else int(cut * len(data))]))


@QUIET
@given(
    records=st.lists(
        st.tuples(
            st.sampled_from([b"path", b"size", b"mtime", b"linkpath", b"GNU.sparse.size", b"comment"]),
            st.binary(max_size=40) | st.integers(-9, 2000).map(lambda n: b"%d" % n),
        ),
        max_size=4,
    ),
    name=st.text(min_size=1, max_size=20).filter(lambda n: "\0" not in n),
    content=st.binary(max_size=700),
)
def test_extended_headers_of_any_kind(records: list[tuple[bytes, bytes]], name: str, content: bytes) -> None:
    raw = name.encode("utf-8", "surrogatepass")[:90]
    head = tar(member("x" * len(raw), content))[:512]
    random_head = bytearray(head)
    random_head[: len(raw)] = raw
    blank = bytes(random_head[:148]) + b" " * 8 + bytes(random_head[156:])
    block = blank[:148] + b"%06o\0 " % sum(blank) + blank[156:]
    _taken_or_refused(ArchiveKind.TAR, pax(*records) + block + padded(content) + bytes(1024))


@QUIET
@given(
    names=st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4, unique_by=_utf8),
    attributes=st.integers(0, 2**32 - 1),
    seed=st.integers(0, 99),
)
def test_zips_of_any_names_and_attributes(names: list[str], attributes: int, seed: int) -> None:
    out, pick = io.BytesIO(), random.Random(seed)
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            info = zipfile.ZipInfo("x", (1980, 1, 1, 0, 0, 0))
            info.filename = _utf8(name)
            info.external_attr = pick.choice((0, attributes))
            archive.writestr(info, b"data", pick.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    _taken_or_refused(ArchiveKind.ZIP, out.getvalue())


def test_the_valid_ones_are_taken() -> None:
    """The examples above begin from something that is read, or they would show nothing."""
    for kind, data in VALID.items():
        assert len(read(kind, data, LIMITS).files) >= len(FILES)
    assert {gzip.compress, lzma.compress, zstandard.compress} < set(PACKERS.values())
