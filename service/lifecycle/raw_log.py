"""The raw bytes of an attempt's output streams: spool files while it runs, zstd blobs at its end.

Bytes are written at their offset, so that a repetition after a crash changes nothing. A spool is local to its host and
needs no fsync: if the machine goes down, so does the sandbox.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import zstandard

from service.domain.limits import RAW_LOG_BYTES
from service.lifecycle.json_lines import MAX_LINE_BYTES

_CHUNK = 1 << 20


class LogSink(Protocol):
    """The content store, as far as a log needs it."""

    def store(self, fd: int, limit: int) -> tuple[str, int]: ...


@dataclass(frozen=True, slots=True)
class SealedLog:
    log_bytes: int
    """Raw bytes kept."""
    sha256: str
    """Digest of the zstd blob."""
    blob_bytes: int


@dataclass(frozen=True, slots=True)
class Spool:
    """Spool files of one attempt, in a directory of its own."""

    folder: Path

    def write(self, stream: str, offset: int, data: bytes) -> None:
        """Write what of ``data`` lies below the limit of the raw log."""
        keep = data[: max(0, RAW_LOG_BYTES - offset)]
        if not keep:
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self.folder / stream, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        try:
            view = memoryview(keep)
            while view:
                done = os.pwrite(fd, view, offset)
                view, offset = view[done:], offset + done
        finally:
            os.close(fd)

    def tail(self, stream: str, end: int) -> tuple[bytes, bool]:
        """Return up to 1 MiB + 1 byte that end at offset ``end``, and whether they reach back to the stream's start."""
        start = max(0, end - MAX_LINE_BYTES - 1)
        try:
            with (self.folder / stream).open("rb") as file:
                file.seek(start)
                data = file.read(end - start)
        except FileNotFoundError:
            data = b""
        return data, start == 0 and len(data) == end

    def chunks(self, stream: str, end: int, size: int) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, bytes) of what was kept of a stream before offset ``end``."""
        try:
            with (self.folder / stream).open("rb") as file:
                at = 0
                while at < end and (data := file.read(min(size, end - at))):
                    yield at, data
                    at += len(data)
        except FileNotFoundError:
            return

    def seal(self, stream: str, total_bytes: int, sink: LogSink) -> SealedLog:
        """Compress the first ``total_bytes`` (those kept) into the content store. Blocks; repeatable."""
        kept = min(total_bytes, RAW_LOG_BYTES)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=self.folder) as packed:
            kept = _compress(self.folder / stream, packed.fileno(), kept)
            size = os.lseek(packed.fileno(), 0, os.SEEK_END)
            os.lseek(packed.fileno(), 0, os.SEEK_SET)
            digest, size = sink.store(packed.fileno(), size)
        return SealedLog(kept, digest, size)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _compress(source: Path, target: int, limit: int) -> int:
    left = limit
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    if source.exists():
        with source.open("rb") as file:
            while left and (chunk := file.read(min(_CHUNK, left))):
                left -= len(chunk)
                _write_all(target, packer.compress(chunk))
    _write_all(target, packer.flush())
    return limit - left


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
