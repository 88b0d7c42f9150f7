"""The reader for each kind of archive."""

from typing import BinaryIO

from service.archives.contract import ArchiveKind, ArchiveLimits, Reader, Sink
from service.archives.inflate import Inflater
from service.archives.meter import Meter
from service.archives.tar import TarReader
from service.archives.zip import ZipReader


def reader_for(kind: ArchiveKind, sink: Sink, limits: ArchiveLimits, spool: BinaryIO) -> Reader:
    """Return a reader that pushes the archive's files into ``sink``.

    ``spool`` is an empty file that can seek: a zip is read from its end, so it is kept there until it has come.
    """
    meter = Meter(limits)
    if kind is ArchiveKind.ZIP:
        return ZipReader(sink, meter, spool)
    return inflated(kind, TarReader(sink, meter), meter)


def inflated(kind: ArchiveKind, inner: Reader, meter: Meter) -> Reader:
    """Return a reader of a stream, compressed or not, that feeds ``inner`` with what is in it."""
    return _Counted(inner, meter) if kind is ArchiveKind.TAR else Inflater(kind, meter, inner)


class _Counted:
    """A stream that is not compressed."""

    def __init__(self, inner: Reader, meter: Meter) -> None:
        self._inner = inner
        self._meter = meter

    def feed(self, data: bytes) -> None:
        self._meter.packed(len(data))
        self._inner.feed(data)

    def finish(self) -> None:
        self._inner.finish()
