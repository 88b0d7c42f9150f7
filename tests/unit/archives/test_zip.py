"""Zips: judged by their directory before anything is inflated, and by what comes out while it is."""

import io
import stat
import struct
import time
import zipfile

import pytest

from service.archives.contract import ArchiveKind, ArchiveLimits
from service.archives.reading import reader_for
from service.domain.errors import Invalid
from tests.unit.archives.reading import Counted, patched, read, refusal, zipped

ZIP = ArchiveKind.ZIP
CENTRAL, LOCAL, END = b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"
ONE = zipped([("a", b"data" * 300)])
DEFLATED_AT, LOCAL_HEADER = 31, 30


class _Pipe(io.RawIOBase):
    """What zipfile takes for a pipe: sizes follow each member."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride] - bytes is all we get
        self.data += data
        return len(data)


def _info(name: str, mode: int = 0, dos: int = 0) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (2026, 5, 1, 12, 0, 0))
    info.external_attr = mode << 16 | dos
    return info


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_reads_what_programs_write(method: int) -> None:
    members = [("d/", b""), ("d/ä b.txt", b"one" * 999), ("empty", b""), ("e", bytes(range(256)) * 5000)]
    for comment in (b"", b"c" * 500):
        out = io.BytesIO(zipped(members, method))
        with zipfile.ZipFile(out, "a") as archive:
            archive.comment = comment
        found = read(ZIP, out.getvalue())
        assert found.files == {name: data for name, data in members if not name.endswith("/")}


def test_reads_streamed_members_and_zip64() -> None:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(zipfile.ZipInfo("wide"), "w", force_zip64=True) as member:
            member.write(b"x" * 5000)
        archive.writestr("short", b"y")
    assert read(ZIP, bytes(pipe.data)).files == {"wide": b"x" * 5000, "short": b"y"}
    seekable = io.BytesIO()
    with zipfile.ZipFile(seekable, "w") as archive, archive.open("wide", "w", force_zip64=True) as member:
        member.write(b"x" * 5000)
    assert read(ZIP, seekable.getvalue()).files == {"wide": b"x" * 5000}


def test_reads_a_zip64_directory() -> None:
    assert read(ZIP, _zip64(1)).files == {"a": b"data" * 300}
    for lie in (0, 2, 7):
        assert refusal(ZIP, _zip64(lie)).type == "archive_malformed"


def _zip64(entries: int) -> bytes:
    """``ONE`` with zip64 end records that say it has so many entries."""
    at = ONE.rindex(END)
    size, offset = struct.unpack_from("<2L", ONE, at + 12)
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, entries, entries, size, offset)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1)
    end = struct.pack("<4s4H2LH", END, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, offset, 0)
    return ONE[:at] + record + locator + end


@pytest.mark.fault(21)
@pytest.mark.parametrize("name", ["../x", "/x", "C:\\x", "a/../../x", "a//b", "a\\..\\..\\b", "./../x", "x\x1b[2J"])
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    plain = "n" * len(name)
    archive = zipped([("good", b"1"), (plain, b"2")]).replace(plain.encode(), name.encode())
    assert refusal(ZIP, archive).type == "archive_unsafe_path"


@pytest.mark.fault(25)
@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK, 0o170000])
@pytest.mark.parametrize("made_by", [0, 3, 19])
def test_links_and_devices_are_refused(kind: int, made_by: int) -> None:
    info = _info("link", kind | 0o777)
    info.create_system = made_by
    error = refusal(ZIP, zipped([("a", b"1"), (info, b"/etc/passwd")]))
    assert (error.type, error.fields["entry"]) == ("archive_unsafe_entry", "link")


def test_a_directory_is_named_as_one_and_has_no_content() -> None:
    for info in (_info("d", stat.S_IFDIR), _info("d", dos=0x10), _info("f/", stat.S_IFREG | 0o644)):
        assert refusal(ZIP, zipped([(info, b"")])).type == "archive_unsafe_entry"
    archive = zipped([("dd", b"content")]).replace(b"dd", b"d/")
    assert refusal(ZIP, archive).type == "archive_malformed"


@pytest.mark.fault(30)
def test_two_members_of_one_name_are_refused() -> None:
    archive = zipped([("a", b"checked"), ("b", b"swapped")]).replace(b"b", b"a")
    assert refusal(ZIP, archive).type == "archive_duplicate_path"
    assert refusal(ZIP, zipped([("a", b"1"), ("a/b", b"2")])).type == "archive_path_clash"


@pytest.mark.fault(32, 33)
def test_modes_and_times_are_made_harmless() -> None:
    never = zipped([(_info("x", stat.S_IFREG | 0o6777), b"1"), (_info("y", 0o666), b"2")])
    found = read(ZIP, patched(never, [(CENTRAL, 12, b"\xff\xff\xff\xff")])).entries
    assert {name: entry.mode for name, entry in found.items()} == {"x": 0o755, "y": 0o644}
    assert [found["x"].mtime, found["y"].mtime] == [1777636800.0, 0.0]


@pytest.mark.parametrize(
    ("changes", "type"),
    [
        ([(CENTRAL, 8, b"\1\0"), (LOCAL, 6, b"\1\0")], "archive_unsafe_entry"),  # encrypted
        ([(CENTRAL, 8, b"\0\x20"), (LOCAL, 6, b"\0\x20")], "archive_unsafe_entry"),  # masked
        ([(CENTRAL, 8, b"\x20\0"), (LOCAL, 6, b"\x20\0")], "archive_unsupported"),  # a patch
        ([(CENTRAL, 10, b"\x0c\0"), (LOCAL, 8, b"\x0c\0")], "archive_unsupported"),  # bzip2
        ([(LOCAL, 30, b"b")], "archive_malformed"),
        ([(LOCAL, 6, b"\2\0")], "archive_malformed"),
        ([(LOCAL, 8, b"\0\0")], "archive_malformed"),
        ([(LOCAL, 14, b"\0\0\0\0")], "archive_malformed"),
        ([(LOCAL, 22, b"\1\0\0\0")], "archive_malformed"),
        ([(CENTRAL, 16, b"\0\0\0\0"), (LOCAL, 14, b"\0\0\0\0")], "archive_malformed"),  # crc
        ([(CENTRAL, 24, b"\1\0\0\0"), (LOCAL, 22, b"\1\0\0\0")], "archive_malformed"),  # smaller than it is
        ([(CENTRAL, 24, b"\0\1\1\0"), (LOCAL, 22, b"\0\1\1\0")], "archive_malformed"),  # larger than it is
        ([(CENTRAL, 24, b"\xff\xff\xff\xff")], "archive_malformed"),  # zip64 without its field
        ([(CENTRAL, 34, b"\1\0")], "archive_malformed"),
        ([(CENTRAL, 42, b"\1\0\0\0")], "archive_malformed"),
        ([(CENTRAL, 42, b"\0\xff\xff\x7f")], "archive_malformed"),
        ([(CENTRAL, 28, b"\0\xff")], "archive_malformed"),
        ([(END, 4, b"\1\0")], "archive_unsupported"),
        ([(END, 8, b"\2\0\2\0")], "archive_malformed"),
        ([(END, 8, b"\0\0\0\0")], "archive_malformed"),
        ([(END, 16, b"\0\0\0\0")], "archive_malformed"),
        ([(END, 20, b"\1\0")], "archive_malformed"),
        ([(LOCAL, DEFLATED_AT, b"\xff\xff")], "archive_malformed"),
    ],
)
def test_zips_that_lie_are_refused(changes: list[tuple[bytes, int, bytes]], type: str) -> None:
    assert refusal(ZIP, patched(ONE, changes)).type == type


def test_a_packed_size_that_is_wrong_is_refused() -> None:
    packed = struct.unpack_from("<L", ONE, ONE.rindex(CENTRAL) + 20)[0]
    less = struct.pack("<L", packed - 1)
    assert refusal(ZIP, patched(ONE, [(CENTRAL, 20, less), (LOCAL, 18, less)])).type == "archive_malformed"
    padded = bytearray(ONE)
    at = LOCAL_HEADER + 1 + packed
    padded[at:at] = b"xx"
    more = struct.pack("<L", packed + 2)
    moved = struct.pack("<L", at + 2)
    archive = patched(bytes(padded), [(CENTRAL, 20, more), (LOCAL, 18, more), (END, 16, moved)])
    assert refusal(ZIP, archive).type == "archive_malformed"


@pytest.mark.parametrize(
    "data",
    [b"", b"PK", ONE[:-1], ONE + b"x", b"#!/bin/sh\n" + ONE, ONE[: len(ONE) // 2], b"x" * 99],
    ids=["nothing", "two bytes", "cut", "more", "a program before it", "half", "noise"],
)
def test_what_is_no_whole_zip_is_refused(data: bytes) -> None:
    assert refusal(ZIP, data).type == "archive_malformed"


def test_a_comment_that_looks_like_an_end_is_refused() -> None:
    """Readers that look from the front of it would see another directory."""
    out = io.BytesIO(ONE)
    with zipfile.ZipFile(out, "a") as archive:
        archive.comment = END + bytes(18)
    assert refusal(ZIP, out.getvalue()).type == "archive_malformed"


def test_members_share_no_bytes() -> None:
    """The way of the bombs that need no nesting: the content of each member is the members after it."""
    inner = zipped([("b", b"0" * 9000)], zipfile.ZIP_STORED)
    record = inner[: inner.rindex(CENTRAL)]
    archive = zipped([("a", record), ("b", b"0" * 9000)], zipfile.ZIP_STORED)
    quoted = struct.pack("<L", LOCAL_HEADER + 1)
    error = refusal(ZIP, patched(archive, [(CENTRAL, 42, quoted)]))
    assert (error.type, "lies over" in error.detail) == ("archive_malformed", True)
    same = refusal(ZIP, patched(archive, [(CENTRAL, 42, bytes(4))]))
    assert same.type == "archive_malformed"


@pytest.mark.fault(26)
def test_a_bomb_is_refused_before_it_inflates() -> None:
    started = time.perf_counter()
    bomb = zipped([(f"{i}", bytes(4 << 20)) for i in range(8)])
    for limits, name in (
        (ArchiveLimits(ratio=100, ratio_free_bytes=1 << 20), "ratio"),
        (ArchiveLimits(total_bytes=20 << 20), "total_bytes"),
        (ArchiveLimits(member_bytes=2 << 20), "member_bytes"),
    ):
        sink = Counted()
        with pytest.raises(Invalid) as refused:
            _read_into(sink, bomb, limits)
        assert (refused.value.fields["limit"], sink.size) == (name, 0)
    assert time.perf_counter() - started < 5


@pytest.mark.fault(26)
def test_a_bomb_that_lies_about_its_size_stops_at_that_size() -> None:
    lie = struct.pack("<L", 1000)
    bomb = patched(zipped([("a", bytes(64 << 20))]), [(CENTRAL, 24, lie), (LOCAL, 22, lie)])
    sink = Counted()
    with pytest.raises(Invalid, match="longer than"):
        _read_into(sink, bomb, ArchiveLimits())
    assert sink.size == 0


@pytest.mark.fault(27)
def test_too_many_members_stop_at_the_count() -> None:
    archive = zipped([(f"{i:x}", b"") for i in range(2000)], zipfile.ZIP_STORED)
    assert refusal(ZIP, archive, ArchiveLimits(entries=1999)).fields["limit"] == "entries"


def _read_into(sink: Counted, data: bytes, limits: ArchiveLimits) -> None:
    reader = reader_for(ZIP, sink, limits, io.BytesIO())
    reader.feed(data)
    reader.finish()
