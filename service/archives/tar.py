"""Tar archives, read as they arrive.

The reader is a generator that is sent one piece after the other, so that it is written as if it could wait for bytes
and yet holds no thread while a client is slow.
"""

from collections.abc import Generator
from dataclasses import replace

from service.archives.contract import PIECE, Sink, entry_of, malformed, unsafe
from service.archives.meter import Meter
from service.archives.names import Names
from service.archives.tar_extended import Extension, long_link, long_name, read_pax
from service.archives.tar_header import BLOCK, TarHeader, read_header

FILE, DIRECTORY, HARD_LINK, SYMBOLIC_LINK = (b"0", b"\0"), b"5", b"1", b"2"
_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK = b"x", b"g", b"L", b"K"
_EXTENDED = (_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK)
_REFUSED = {
    b"1": "a hard link", b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"6": "a fifo",
    b"7": "a contiguous file", b"S": "a sparse file", b"V": "a volume label", b"M": "a part of a file",
    b"D": "a GNU directory",
}  # fmt: skip
_ZEROS = bytes(BLOCK)

Step = Generator[None, bytes | None, None]


class TarReader:
    """A :class:`Reader` of an uncompressed tar stream; what it costs is counted by whoever feeds it."""

    def __init__(self, sink: Sink, meter: Meter) -> None:
        self._sink = sink
        self._meter = meter
        self._names = Names(meter.limits)
        self._piece = memoryview(b"")
        self._steps = self._archive()
        next(self._steps)

    def feed(self, data: bytes) -> None:
        if data:
            self._steps.send(data)

    def finish(self) -> None:
        try:
            self._steps.send(None)
        except StopIteration:
            return
        raise malformed("the archive is cut off")

    def _archive(self) -> Step:
        extension = Extension()
        while (block := (yield from self._take(BLOCK))) != _ZEROS:
            header = read_header(block)
            self._meter.entry()
            if header.kind in _EXTENDED:
                extension = yield from self._extended(header, extension)
            else:
                yield from self._entry(header, extension)
                extension = Extension()
        if extension != Extension():
            raise malformed("an extended header has no entry")
        yield from self._end()
        self._names.finish()

    def _extended(self, header: TarHeader, before: Extension) -> Generator[None, bytes | None, Extension]:
        self._meter.header(header.size, header.name)
        data = yield from self._take(header.size)
        yield from self._padding(header.size)
        if header.kind == _PAX_GLOBAL:
            read_pax(data, everywhere=True)
            return before
        linked = header.kind == _LONG_LINK
        if (before.link is not None) if linked else (replace(before, link=None) != Extension()):
            raise malformed("an entry has two extended headers")
        if linked:
            return replace(before, link=long_link(data).link)
        found = long_name(data) if header.kind == _LONG_NAME else read_pax(data, everywhere=False)
        return replace(found, link=before.link if found.link is None else found.link)

    def _entry(self, header: TarHeader, extension: Extension) -> Step:
        name, size = extension.path_of(header), extension.size_of(header)
        if header.kind == DIRECTORY:
            if size:
                raise malformed("a directory has content", name)
            self._names.directory(name)
            return
        if header.kind not in FILE:
            self._other(header, extension)
            return
        self._meter.member(size, name)
        self._sink.begin(entry_of(self._names.file(name), size, header.mode, extension.mtime_of(header)))
        yield from self._copy(size)
        self._sink.end()
        yield from self._padding(size)

    def _other(self, header: TarHeader, extension: Extension) -> None:
        """What is neither a file nor a directory."""
        what = _REFUSED.get(header.kind, "of a kind that is not known")
        raise unsafe(f"is {what}; only files and directories are taken", extension.path_of(header))

    def _copy(self, size: int) -> Step:
        while size:
            yield from self._wait()
            part = self._piece[: min(size, PIECE)]
            self._sink.write(part)
            self._piece = self._piece[len(part) :]
            size -= len(part)

    def _padding(self, size: int) -> Step:
        yield from self._take(-size % BLOCK)

    def _take(self, size: int) -> Generator[None, bytes | None, bytes]:
        """Return exactly ``size`` bytes; callers bound it. Raises Invalid at the stream's end."""
        taken = bytearray()
        while len(taken) < size:
            yield from self._wait()
            part = self._piece[: size - len(taken)]
            taken += part
            self._piece = self._piece[len(part) :]
        return bytes(taken)

    def _wait(self) -> Step:
        while not self._piece:
            data = yield
            if data is None:
                raise malformed("the archive is cut off")
            self._piece = memoryview(data)

    def _end(self) -> Step:
        """One block of zeros was read: another must follow, and then nothing but zeros."""
        if (yield from self._take(BLOCK)) != _ZEROS:
            raise malformed("something follows the archive's end")
        while True:
            if self._piece.tobytes().strip(b"\0"):
                raise malformed("something follows the archive's end")
            data = yield
            if data is None:
                return
            self._piece = memoryview(data)
