"""What many callers write, those of the same moment together: one wait for the disk, one transaction for all of them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from service.store.blobs import BlobStore
from service.store.database import Database, Tx, retrying

New = TypeVar("New")
Kept = TypeVar("Kept")
MOST = 100
"""Of one transaction."""


@dataclass(slots=True)
class _Batch(Generic[New, Kept]):
    new: list[New] = field(default_factory=list[New])
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    writing: "asyncio.Task[list[Kept]] | None" = None


class BatchWriter(Generic[New, Kept]):
    """While one batch is written, the next one gathers. ``put`` returns what it kept of each, in order."""

    def __init__(
        self,
        db: Database,
        blobs: BlobStore,
        put: Callable[[Tx, Sequence[New]], Awaitable[list[Kept]]],
        database_patience_s: float = 600.0,
    ) -> None:
        self._db, self._blobs, self._put, self._patience_s = db, blobs, put, database_patience_s
        self._gathering: _Batch[New, Kept] | None = None
        self._turn = asyncio.Lock()
        self._open: set[asyncio.Task[list[Kept]]] = set()

    async def write(self, new: New, blobs: Mapping[str, bytes]) -> Kept:
        """Write one, durable on return, with the blobs that it names; return what stands.

        What was begun is written even if the caller is cancelled. Raises Unavailable.
        """
        batch = self._gathering
        if batch is None or batch.writing is None or len(batch.new) >= MOST:
            batch = self._gathering = _Batch[New, Kept]()
            batch.writing = asyncio.create_task(self._write(batch), name="batch")
            self._open.add(batch.writing)
            batch.writing.add_done_callback(self._open.discard)
        place = len(batch.new)
        batch.new.append(new)
        batch.blobs.update(blobs)
        return (await asyncio.shield(batch.writing))[place]

    async def settle(self) -> None:
        """Wait until everything is written."""
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _write(self, batch: _Batch[New, Kept]) -> list[Kept]:
        async with self._turn:
            if self._gathering is batch:
                self._gathering = None
            await asyncio.to_thread(self._blobs.store_many, batch.blobs)

            async def put(tx: Tx) -> list[Kept]:
                return await self._put(tx, batch.new)

            return await retrying(self._db, put, self._patience_s)
