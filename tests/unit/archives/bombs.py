"""Archives that are small until they are read. As a program (``KIND``): reads one, prints what it came to, as JSON."""

import io
import json
import sys
import zlib
from pathlib import Path

import zstandard

from service.archives.contract import ArchiveKind, ArchiveLimits
from service.archives.reading import reader_for
from service.domain.errors import Invalid
from tests.unit.archives.reading import Counted, block

MIB = 1 << 20


def gzip_bomb(total: int) -> bytes:
    """A tar of one member of ``total`` zeros. The same flushed part over and over: its checksum is never reached."""
    size = (total | 1 << 95).to_bytes(12, "big")
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.compress(block(b"zeros", octal=size)) + packer.flush(zlib.Z_FULL_FLUSH)
    part = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + part * (total // MIB)


def zstd_bomb(total: int) -> bytes:
    out = io.BytesIO()
    with zstandard.ZstdCompressor(level=1).stream_writer(out, closefd=False) as writer:
        writer.write(block(b"zeros", size=total))
        for _ in range(total // MIB):
            writer.write(bytes(MIB))
    return out.getvalue()


def empty_entries(count: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.flush(zlib.Z_FULL_FLUSH)
    thousand = packer.compress(b"".join(block(b"%04d" % i) for i in range(1000))) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + thousand * (count // 1000)


def _peak_kib() -> int:
    """Of this program alone: the usual counter begins with its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def main(kind: str) -> None:
    made = ArchiveKind(kind)
    archive = gzip_bomb(10 << 30) if made is ArchiveKind.TAR_GZIP else zstd_bomb(2 << 30)
    before, sink = _peak_kib(), Counted()
    reader = reader_for(made, sink, ArchiveLimits(total_bytes=16 << 30, member_bytes=16 << 30), io.BytesIO())
    limit = None
    try:
        for at in range(0, len(archive), MIB):
            reader.feed(archive[at : at + MIB])
    except Invalid as error:
        limit = error.fields.get("limit")
    after = _peak_kib()
    print(
        json.dumps(
            {"archive": len(archive), "limit": limit, "size": sink.size, "before_kib": before, "after_kib": after}
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
