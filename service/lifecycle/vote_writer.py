"""Votes into the store, those of the same moment together: one wait for the disk, one transaction for all of them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from service.domain.judging import Vote
from service.store import votes
from service.store.blobs import BlobStore
from service.store.database import Database, Tx, retrying
from service.store.votes import NewVote

MOST = 100
"""Votes that are written together."""


@dataclass(slots=True)
class _Batch:
    new: list[NewVote] = field(default_factory=list[NewVote])
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    writing: "asyncio.Task[list[Vote]] | None" = None


class VoteWriter:
    """While one batch is written, the next one gathers."""

    def __init__(self, db: Database, blobs: BlobStore, database_patience_s: float = 600.0) -> None:
        self._db, self._blobs, self._patience_s = db, blobs, database_patience_s
        self._gathering: _Batch | None = None
        self._turn = asyncio.Lock()
        self._open: set[asyncio.Task[list[Vote]]] = set()

    async def write(self, new: NewVote, blobs: Mapping[str, bytes]) -> Vote:
        """Write a vote, durable on return, with the blobs that it names; return the one that stands.

        What was begun is written even if the caller is cancelled. Raises Unavailable.
        """
        batch = self._gathering
        if batch is None or batch.writing is None or len(batch.new) >= MOST:
            batch = self._gathering = _Batch()
            batch.writing = asyncio.create_task(self._write(batch), name="votes")
            self._open.add(batch.writing)
            batch.writing.add_done_callback(self._open.discard)
        place = len(batch.new)
        batch.new.append(new)
        batch.blobs.update(blobs)
        return (await asyncio.shield(batch.writing))[place]

    async def settle(self) -> None:
        """Wait until everything is written."""
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _write(self, batch: _Batch) -> list[Vote]:
        async with self._turn:
            if self._gathering is batch:
                self._gathering = None
            await asyncio.to_thread(self._blobs.store_many, batch.blobs)

            async def put(tx: Tx) -> list[Vote]:
                return await votes.put(tx, batch.new)

            return await retrying(self._db, put, self._patience_s)
