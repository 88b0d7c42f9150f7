"""Tar streams: what honest programs write is read, and what could mean two things, or too much, is refused."""

import subprocess
import tarfile
from pathlib import Path

import pytest

from service.archives.contract import ArchiveKind, ArchiveLimits
from tests.unit.archives.reading import END, PACKERS, block, member, padded, pax, read, refusal, tar

TAR = ArchiveKind.TAR
LONG = "/".join(["d" * 90] * 4) + "/ä.txt"


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("piece", [1 << 20, 511, 1])
def test_reads_what_programs_write(kind: ArchiveKind, format: int, piece: int) -> None:
    long = LONG if format != tarfile.USTAR_FORMAT else "p/" * 60 + "x"
    members = [
        member("./", type=tarfile.DIRTYPE),
        member("./a", b"one"),
        member("empty"),
        member("b", type=tarfile.DIRTYPE),
        member("b/block", bytes(range(256)) * 2),
        member(long, b"deep" * 1000),
    ]
    found = read(kind, PACKERS[kind](tar(*members, format=format)), piece=piece)
    assert found.files == {"a": b"one", "empty": b"", "b/block": bytes(range(256)) * 2, long: b"deep" * 1000}


@pytest.mark.fault(21)
@pytest.mark.parametrize(
    "name", ["../x", "/x", "C:\\x", "c:x", "a/../../x", "a//b", "a/./b", "..", "a\\b", "a\nb", "x/", "\x1b]0;x", "a/.."]
)
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    good = member("good", b"x")
    error = refusal(TAR, tar(good)[:1024] + block(name.encode()) + END)
    assert error.type == "archive_unsafe_path"
    assert str(error.fields["entry"]).isprintable()


@pytest.mark.fault(21)
def test_a_name_that_is_cut_by_nul_or_is_not_utf8_is_refused() -> None:
    assert refusal(TAR, block(b"a\0/../x") + END).type == "archive_malformed"
    error = refusal(TAR, block(b"caf\xe9") + END)
    assert (error.type, error.fields["entry"]) == ("archive_unsafe_path", "caf\\xe9")
    assert refusal(TAR, pax((b"path", b"a\0b")) + block(b"a") + END).type == "archive_unsafe_path"


@pytest.mark.fault(22)
@pytest.mark.parametrize("kind", [b"1", b"2", b"3", b"4", b"6", b"7", b"S", b"V", b"M", b"D", b"A"])
def test_only_files_and_directories_are_taken(kind: bytes) -> None:
    link = block(b"link", kind=kind, link=b"/etc".ljust(100, b"\0"))
    error = refusal(TAR, link + block(b"link/passwd", size=1) + padded(b"x") + END)
    assert (error.type, error.fields["entry"]) == ("archive_unsafe_entry", "link")


def test_sparse_files_are_refused_in_their_new_form() -> None:
    sparse = pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.name", b"big")) + block(b"big", size=512) + bytes(512)
    assert refusal(TAR, sparse + END).type == "archive_unsafe_entry"


@pytest.mark.fault(30)
def test_two_entries_of_one_name_are_refused() -> None:
    error = refusal(TAR, tar(member("a", b"checked"), member("./a", b"swapped")))
    assert (error.type, error.fields["entry"]) == ("archive_duplicate_path", "a")


@pytest.mark.parametrize("order", [1, -1])
def test_a_file_is_no_directory(order: int) -> None:
    members = [member("a/b/c", b"1"), member("a/b", b"2")][::order]
    assert refusal(TAR, tar(*members)).type == "archive_path_clash"
    listed = [member("a", b"1"), member("a", type=tarfile.DIRTYPE)][::order]
    assert refusal(TAR, tar(*listed)).type == "archive_path_clash"


@pytest.mark.fault(18)
def test_names_that_only_look_the_same_are_different_files() -> None:
    names = ["e\u0301", "\u00e9", "README", "readme"]
    assert list(read(TAR, tar(*[member(n, n.encode()) for n in names])).files) == names


@pytest.mark.fault(31)
def test_a_header_may_not_be_huge() -> None:
    name = b"n" * (10 << 20)
    for data in (pax((b"path", name)), block(b"long", size=len(name), kind=b"L") + padded(name)):
        error = refusal(TAR, data + block(b"x") + END)
        assert (error.type, error.fields["limit"]) == ("archive_limit", "header_bytes")
    error = refusal(TAR, pax((b"path", b"p/" * 600 + b"x")) + block(b"x") + END)
    assert error.fields["limit"] == "path_bytes"


@pytest.mark.fault(31)
@pytest.mark.parametrize(
    "archive",
    [
        pax((b"size", b"3")) + block(b"a", size=600) + bytes(1024),
        pax((b"size", b"-1")) + block(b"a"),
        pax((b"size", b"9" * 25)) + block(b"a"),
        pax((b"size", b"5000")) + block(b"a") + bytes(512),
        pax((b"size", b"1"), (b"size", b"2")) + block(b"a") + bytes(512),
        pax((b"size", b"0")) + pax((b"size", b"0")) + block(b"a"),
        pax((b"path", b"other"), kind=b"g") + block(b"a"),
        block(b"pax", size=9, kind=b"x") + padded(b"99 path=x") + block(b"a"),
        block(b"pax", size=9, kind=b"x") + padded(b"path=xxxx") + block(b"a"),
        block(b"pax", size=9, kind=b"x") + padded(b"9 pathxx\n") + block(b"a"),
        block(b"long", size=3, kind=b"L") + padded(b"a\0b") + block(b"a"),
        pax((b"path", b"a")),
    ],
)
def test_extended_headers_that_lie_are_refused(archive: bytes) -> None:
    assert refusal(TAR, archive + END).type == "archive_malformed"


@pytest.mark.parametrize(
    "archive",
    [
        block(b"a", octal=b"\xff" * 12),
        block(b"a", octal=b"0000000000x\0"),
        block(b"a", octal=b"-0000000001\0"),
        block(b"a", mode=b"99999999"),
        block(b"a", mtime=b"notatime    "),
        block(b"a", magic=b"ustar\x0099"),
    ],
)
def test_headers_that_are_none_are_refused(archive: bytes) -> None:
    assert refusal(TAR, archive + END).type in ("archive_malformed", "archive_unsupported")


def test_a_changed_header_is_refused() -> None:
    archive = bytearray(block(b"a") + END)
    archive[0] ^= 1
    assert refusal(TAR, bytes(archive)).type == "archive_malformed"


def test_a_directory_has_no_content() -> None:
    assert refusal(TAR, block(b"d", size=3, kind=b"5") + padded(b"abc") + END).type == "archive_malformed"


@pytest.mark.fault(32)
def test_modes_are_made_harmless() -> None:
    modes = {"a": 0o6777, "b": 0o666, "c": 0o4700, "d": 0o1111}
    found = read(TAR, tar(*[member(name, mode=mode) for name, mode in modes.items()]))
    assert {name: entry.mode for name, entry in found.entries.items()} == {
        "a": 0o755,
        "b": 0o644,
        "c": 0o755,
        "d": 0o755,
    }


@pytest.mark.fault(33)
def test_times_are_clamped() -> None:
    negative = (-(2**63)).to_bytes(12, "big", signed=True)
    archive = (
        block(b"old", mtime=negative)
        + pax((b"mtime", b"-1.5"))
        + block(b"before")
        + pax((b"mtime", b"9" * 30 + b".9"))
        + block(b"late")
        + block(b"far", mtime=b"\x80" + b"\xff" * 11)
        + pax((b"mtime", b"1500000000.25"))
        + block(b"plain")
        + END
    )
    times = {name: entry.mtime for name, entry in read(TAR, archive).entries.items()}
    end = 253_402_300_799.0
    assert times == {"old": 0.0, "before": 0.0, "late": end, "far": end, "plain": 1500000000.25}


@pytest.mark.parametrize("text", [b"nan", b"inf", b"1e99", b"9" * 31, b""])
def test_times_that_are_none_are_refused(text: bytes) -> None:
    assert refusal(TAR, pax((b"mtime", text)) + block(b"a") + END).type == "archive_malformed"


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (ArchiveLimits(total_bytes=5000), "archive_bytes"), (ArchiveLimits(member_bytes=4095), "member_bytes"),
        (ArchiveLimits(entries=2), "entries"), (ArchiveLimits(depth=2), "depth"), (ArchiveLimits(path_bytes=4), "path_bytes"),
    ],
)  # fmt: skip
def test_limits(limits: ArchiveLimits, limit: str) -> None:
    archive = tar(member("a"), member("b/c/d", bytes(4096)), member("e"))
    assert refusal(TAR, archive, limits).fields["limit"] == limit


def test_a_component_fits_a_file_system() -> None:
    assert refusal(TAR, tar(member("n" * 256))).fields["limit"] == "name_bytes"


@pytest.mark.parametrize("cut", [0, 1, 511, 512, 1023, 1024, 1536, 2047])
def test_a_cut_archive_is_refused(cut: int) -> None:
    archive = block(b"a", size=600) + padded(b"x" * 600) + END
    assert refusal(TAR, archive[:cut]).type == "archive_malformed"


@pytest.mark.parametrize(
    "tail", [END[:512] + block(b"b") + END, END + b"x", END + block(b"b"), END + bytes(9999) + b"\1"]
)
def test_nothing_follows_the_end(tail: bytes) -> None:
    assert refusal(TAR, block(b"a") + tail).type == "archive_malformed"
    assert read(TAR, block(b"a") + END + bytes(9999)).files == {"a": b""}


@pytest.mark.parametrize("format", ["gnu", "oldgnu", "pax", "ustar", "v7"])
def test_reads_what_the_program_tar_writes(tmp_path: Path, format: str) -> None:
    (tmp_path / "t/visible/d").mkdir(parents=True)
    files = {"task.toml": b"x", "visible/\u00fc x.txt": b"y" * 5000, "visible/d/empty": b""}
    for name, data in files.items():
        (tmp_path / "t" / name).write_bytes(data)
    (tmp_path / "t/task.toml").chmod(0o777)
    command = ["tar", f"--format={format}", "-C", str(tmp_path / "t"), "-cf", "-", "."]
    made = subprocess.run(command, capture_output=True, check=True, timeout=30)
    found = read(TAR, made.stdout)
    assert found.files == files
    assert (found.entries["task.toml"].mode, found.entries["visible/d/empty"].mode) == (0o755, 0o644)
