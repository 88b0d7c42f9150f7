"""Zip archives: kept in a file until they have come, judged by their directory, then inflated member by member."""

import zlib
from collections.abc import Iterator
from typing import BinaryIO

from service.archives.contract import PIECE, Sink, entry_of, malformed, over_limit
from service.archives.meter import Meter
from service.archives.names import Names
from service.archives.zip_end import find_directory
from service.archives.zip_members import LOCAL, STORED, ZipMember, data_offset, read_members


class ZipReader:
    """A :class:`Reader` of a zip; nothing is inflated before its whole directory has been found to be sound."""

    def __init__(self, sink: Sink, meter: Meter, spool: BinaryIO) -> None:
        self._sink = sink
        self._meter = meter
        self._spool = spool
        self._size = 0

    def feed(self, data: bytes) -> None:
        self._meter.packed(len(data))
        self._spool.write(data)
        self._size += len(data)

    def finish(self) -> None:
        directory = find_directory(self._spool, self._size, self._meter)
        names = Names(self._meter.limits)
        files: list[tuple[ZipMember, str]] = []
        members: list[ZipMember] = []
        for member in read_members(self._spool, directory, self._meter):
            self._meter.member(member.size, member.name)
            members.append(member)
            if member.is_directory:
                names.directory(member.name)
            else:
                files.append((member, names.file(member.name)))
        names.finish()
        self._check_promise([member.size for member, _ in files])
        starts = self._starts(members, directory.offset)
        for member, path in files:
            self._unpack(member, path, starts[member.offset])

    def _check_promise(self, sizes: list[int]) -> None:
        """What is promised is within the limits; that the promise is kept is seen while inflating."""
        limits, total = self._meter.limits, sum(sizes)
        if total > limits.total_bytes:
            raise over_limit("total_bytes", limits.total_bytes)
        if total > limits.ratio_free_bytes + limits.ratio * self._size:
            raise over_limit("ratio", limits.ratio)

    def _starts(self, members: list[ZipMember], end: int) -> dict[int, int]:
        """Return where the bytes of each member begin, by the place of its header. No two share a byte."""
        starts: dict[int, int] = {}
        free = 0
        for member in sorted(members, key=lambda m: m.offset):
            if member.offset < free:
                raise malformed("it lies over another member", member.name)
            if member.offset + LOCAL.size > end:
                raise malformed("it is not where the archive has members", member.name)
            starts[member.offset] = data_offset(self._spool, member)
            free = starts[member.offset] + member.packed
            if free > end:
                raise malformed("it reaches into the directory", member.name)
        return starts

    def _unpack(self, member: ZipMember, path: str, start: int) -> None:
        self._spool.seek(start)
        self._sink.begin(entry_of(path, member.size, member.mode, member.mtime))
        size, crc = 0, 0
        for piece in self._stored(member) if member.method == STORED else self._inflated(member):
            self._meter.inflated(len(piece))
            size += len(piece)
            if size > member.size:
                raise malformed("it is longer than the directory says", member.name)
            crc = zlib.crc32(piece, crc)
            self._sink.write(piece)
        if (size, crc) != (member.size, member.crc):
            raise malformed("its size or checksum is not that of the directory", member.name)
        self._sink.end()

    def _stored(self, member: ZipMember) -> Iterator[bytes]:
        left = member.packed
        while left:
            piece = self._spool.read(min(PIECE, left))
            if not piece:
                raise malformed("it is cut off", member.name)
            left -= len(piece)
            yield piece

    def _inflated(self, member: ZipMember) -> Iterator[bytes]:
        engine = zlib.decompressobj(wbits=-15)
        try:
            for packed in self._stored(member):
                if engine.eof:
                    raise malformed("something follows its content", member.name)
                data = packed
                while not engine.eof:
                    piece = engine.decompress(data, PIECE)
                    data = engine.unconsumed_tail
                    yield piece
                    if not data and len(piece) < PIECE:
                        break
        except zlib.error as error:
            raise malformed(f"it cannot be inflated ({error})", member.name) from error
        if not engine.eof or engine.unused_data:
            raise malformed("its packed size is wrong", member.name)
