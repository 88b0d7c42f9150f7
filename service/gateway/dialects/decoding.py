"""Content encodings of answers, decoded in bounded pieces only to be read; what passes on is never touched."""

import zlib
from collections.abc import Iterator

import zstandard

_PIECE = 1 << 18
_MOST = 1 << 29
"""Decoded bytes after which an answer is not read any further: nobody's model writes half a gigabyte."""
_GZIP = frozenset({"gzip", "x-gzip", "deflate"})


class Decoder:
    """``readable`` turns false for good at an encoding or content that cannot be read."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower()
        self.readable = self._encoding in {"", "identity", "zstd"} | _GZIP
        self._inflate = zlib.decompressobj(47)
        self._zstd = zstandard.ZstdDecompressor(max_window_size=1 << 23).decompressobj(read_across_frames=True)
        self._out = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not self.readable:
            return
        try:
            for piece in self._decode(data):
                self._out += len(piece)
                yield piece
                if self._out > _MOST:
                    self.readable = False
                    return
        except (zlib.error, zstandard.ZstdError):
            self.readable = False

    def _decode(self, data: bytes) -> Iterator[bytes]:
        if self._encoding in _GZIP:
            yield from self._gzip(data)
        elif self._encoding == "zstd":
            # A block of 4 bytes may stand for 128 KiB, and this decoder knows no bound of its own: small spoons.
            for start in range(0, len(data), 256):
                yield self._zstd.decompress(data[start : start + 256])
        else:
            yield data

    def _gzip(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflate.eof:
                self._inflate = zlib.decompressobj(47)
            yield self._inflate.decompress(data, _PIECE)
            data = self._inflate.unconsumed_tail or self._inflate.unused_data
