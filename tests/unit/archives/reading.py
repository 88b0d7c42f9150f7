"""Archives for tests, and what a reader makes of them."""

import gzip
import io
import lzma
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import zstandard

from service.archives.contract import ArchiveKind, ArchiveLimits, Entry
from service.archives.reading import reader_for
from service.domain.errors import Invalid

PACKERS: dict[ArchiveKind, Callable[[bytes], bytes]] = {
    ArchiveKind.TAR: bytes,
    ArchiveKind.TAR_GZIP: gzip.compress,
    ArchiveKind.TAR_ZSTD: zstandard.compress,
    ArchiveKind.TAR_XZ: lzma.compress,
}


@dataclass
class Kept:
    """A sink that keeps what it is given, and counts it."""

    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _path: str = ""
    _data: bytearray = field(default_factory=bytearray)

    def begin(self, entry: Entry) -> None:
        assert entry.path not in self.entries
        self.entries[entry.path] = entry
        self._path, self._data = entry.path, bytearray()

    def write(self, data: bytes | memoryview) -> None:
        self._data += data

    def end(self) -> None:
        assert len(self._data) == self.entries[self._path].size_bytes
        self.files[self._path] = bytes(self._data)


@dataclass
class Counted:
    """A sink that keeps nothing."""

    files: int = 0
    size: int = 0

    def begin(self, entry: Entry) -> None:
        self.files += 1

    def write(self, data: bytes | memoryview) -> None:
        self.size += len(data)

    def end(self) -> None:
        pass


def read(kind: ArchiveKind, data: bytes, limits: ArchiveLimits | None = None, piece: int = 1 << 16) -> Kept:
    """Read an archive that comes in pieces of ``piece`` bytes. Raises Invalid."""
    kept = Kept()
    with tempfile.TemporaryFile() as spool:
        reader = reader_for(kind, kept, limits or ArchiveLimits(), spool)
        for at in range(0, len(data), piece):
            reader.feed(data[at : at + piece])
        reader.finish()
    return kept


def refusal(kind: ArchiveKind, data: bytes, limits: ArchiveLimits | None = None) -> Invalid:
    """Return why an archive is refused; it must be, however it is cut into pieces."""
    found: list[Invalid] = []
    for piece in (1 << 20, 700, 61):
        try:
            kept = read(kind, data, limits, piece)
        except Invalid as error:
            found.append(error)
        else:
            raise AssertionError(f"was taken: {list(kept.files)}")
        if len(data) > 1 << 20:
            break
    assert len({(e.type, e.fields.get("entry")) for e in found}) == 1, found
    return found[0]


def member(name: str, data: bytes = b"", **more: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def tar(*members: tuple[tarfile.TarInfo, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def block(name: bytes, *, size: int = 0, kind: bytes = b"0", **raw: bytes) -> bytes:
    """A header block as no honest program would write it; ``raw`` are fields as they stand, by name."""
    fields = {
        "name": name.ljust(100, b"\0"), "mode": b"0000644\0", "uid": b"0000000\0", "gid": b"0000000\0",
        "octal": b"%011o\0" % size, "mtime": b"00000000000\0", "checksum": b" " * 8, "kind": kind, "link": bytes(100),
        "magic": b"ustar\x0000",
    } | raw  # fmt: skip
    head = b"".join(fields.values()).ljust(512, b"\0")
    return head[:148] + b"%06o\0 " % sum(head) + head[156:]


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


END = bytes(1024)


def pax(*records: tuple[bytes, bytes], kind: bytes = b"x") -> bytes:
    """An extended header."""
    data = b"".join(_record(key, value) for key, value in records)
    return block(b"pax", size=len(data), kind=kind) + padded(data)


def _record(key: bytes, value: bytes) -> bytes:
    body = b" %s=%s\n" % (key, value)
    length = len(body) + 1
    while len(str(length)) + len(body) != length:
        length = len(str(length)) + len(body)
    return b"%d%s" % (length, body)


def zipped(members: Iterable[tuple[zipfile.ZipInfo | str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def patched(data: bytes, changes: Sequence[tuple[bytes, int, bytes]]) -> bytes:
    """Return ``data`` with bytes replaced at an offset from the last place of each signature."""
    out = bytearray(data)
    for signature, offset, new in changes:
        at = data.rindex(signature) + offset
        out[at : at + len(new)] = new
    return bytes(out)
