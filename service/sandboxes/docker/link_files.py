"""Files on their way into a sandbox: read piece by piece, in a thread, never whole."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from typing import BinaryIO, NamedTuple

from service.sandboxes.contract import FileSource
from service.sandboxes.docker.framing import TRANSFER, Kind, pack

PIECES_AT_ONCE = 4
"""Pieces of up to 256 KiB read in one visit to a thread."""
LAST, FIRST_OF_BATCH = 1, 2


class Piece(NamedTuple):
    kind: Kind
    flag: int
    body: bytes


def pieces(files: Sequence[FileSource]) -> Iterator[Piece]:
    """Yield the messages that write ``files``. Raises OSError when a source cannot be read."""
    flag = FIRST_OF_BATCH
    for source in files:
        head = (source.path.encode("utf-8", "surrogateescape"), b"%d" % source.mode)
        if source.file is None:
            yield from _pieces_of_bytes(head, source.data or b"", flag)
        else:
            with source.file.open("rb", buffering=0) as file:
                yield from _pieces_of_file(head, file, flag)
        flag = 0


def _pieces_of_bytes(head: tuple[bytes, bytes], data: bytes, flag: int) -> Iterator[Piece]:
    last = LAST if len(data) <= TRANSFER else 0
    yield Piece(Kind.FILE, flag | last, pack(*head, data[:TRANSFER]))
    for at in range(TRANSFER, len(data), TRANSFER):
        last = LAST if at + TRANSFER >= len(data) else 0
        yield Piece(Kind.CHUNK, last, data[at : at + TRANSFER])


def _pieces_of_file(head: tuple[bytes, bytes], file: BinaryIO, flag: int) -> Iterator[Piece]:
    yield Piece(Kind.FILE, flag, pack(*head, file.read(TRANSFER)))
    while data := file.read(TRANSFER):
        yield Piece(Kind.CHUNK, 0, data)
    yield Piece(Kind.CHUNK, LAST, b"")


async def read_ahead(files: Sequence[FileSource]) -> AsyncIterator[Piece]:
    """Yield ``pieces(files)``, reading from disk outside the event loop. Raises OSError."""
    source = pieces(files)
    in_memory = all(item.file is None for item in files)
    while True:
        if in_memory:
            batch = list(islice(source, PIECES_AT_ONCE))
        else:
            batch = await asyncio.to_thread(lambda: list(islice(source, PIECES_AT_ONCE)))
        if not batch:
            return
        for piece in batch:
            yield piece
