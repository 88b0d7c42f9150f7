"""Compressed tar streams: inflated in pieces of bounded size, counted as they come out, and of one member only."""

import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import zstandard

from service.archives.contract import PIECE, ArchiveKind, Reader, malformed
from service.archives.meter import Meter
from service.domain.limits import MIB

_WINDOW = 32 * MIB
"""Most memory that a compressor may ask its reader for (``zstd -19`` and ``xz -6`` ask for 8 MiB)."""
_ZSTD_SLICE = 256
"""Bytes of zstd taken at once: at most 64 blocks of 128 KiB come out."""


class Inflater:
    """A :class:`Reader` of one compressed stream that feeds another reader with its content."""

    def __init__(self, kind: ArchiveKind, meter: Meter, inner: Reader) -> None:
        self._meter = meter
        self._inner = inner
        self._engine, self._pieces = _ENGINES[kind]()

    def feed(self, data: bytes) -> None:
        if not data:
            return
        self._meter.packed(len(data))
        try:
            for piece in self._pieces(self._engine, data):
                self._meter.inflated(len(piece))
                self._inner.feed(piece)
        except (zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
            raise malformed(f"the compressed stream is broken ({error})") from error
        if self._engine.eof and self._engine.unused_data:
            raise malformed("something follows the compressed stream")

    def finish(self) -> None:
        if not self._engine.eof:
            raise malformed("the compressed stream is cut off")
        self._inner.finish()


Pieces = Callable[[Any, bytes], Iterator[bytes]]


def _gzip() -> tuple[Any, Pieces]:
    return zlib.decompressobj(wbits=31), _zlib_pieces


def _xz() -> tuple[Any, Pieces]:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_WINDOW + MIB), _lzma_pieces


def _zstd() -> tuple[Any, Pieces]:
    return zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj(), _zstd_pieces


_ENGINES: dict[ArchiveKind, Callable[[], tuple[Any, Pieces]]] = {
    ArchiveKind.TAR_GZIP: _gzip,
    ArchiveKind.TAR_XZ: _xz,
    ArchiveKind.TAR_ZSTD: _zstd,
}


def _zlib_pieces(engine: Any, data: bytes) -> Iterator[bytes]:
    if engine.eof:
        raise malformed("something follows the compressed stream")
    while True:
        piece = engine.decompress(data, PIECE)
        data = engine.unconsumed_tail
        if piece:
            yield piece
        if engine.eof or (not data and len(piece) < PIECE):
            return


def _lzma_pieces(engine: Any, data: bytes) -> Iterator[bytes]:
    if engine.eof:
        raise malformed("something follows the compressed stream")
    yield engine.decompress(data, PIECE)
    while not engine.eof and not engine.needs_input:
        yield engine.decompress(b"", PIECE)


def _zstd_pieces(engine: Any, data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), _ZSTD_SLICE):
        if engine.eof:
            raise malformed("something follows the compressed stream")
        yield engine.decompress(data[at : at + _ZSTD_SLICE])
