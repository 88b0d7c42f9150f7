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


@dataclass(frozen=True, slots=True)
class _Written:
    new: NewVote
    blobs: Mapping[str, bytes]
    done: "asyncio.Future[Vote]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class VoteWriter:
    def __init__(self, db: Database, blobs: BlobStore, database_patience_s: float = 600.0) -> None:
        self._db, self._blobs, self._patience_s = db, blobs, database_patience_s
        self._left: list[_Written] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, new: NewVote, blobs: Mapping[str, bytes]) -> Vote:
        """Write a vote, durable on return, with the blobs that it names; return the one that stands.

        What was begun is written even if the caller is cancelled. Raises Unavailable.
        """
        one = _Written(new, blobs)
        self._left.append(one)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all(), name="votes")
        return await asyncio.shield(one.done)

    async def settle(self) -> None:
        """Wait until everything is written."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)

    async def _write_all(self) -> None:
        while self._left:
            some, self._left = self._left[:MOST], self._left[MOST:]
            try:
                stored = await self._write(some)
            except BaseException as error:
                for one in some:
                    if not one.done.done():
                        one.done.set_exception(error)
                        one.done.exception()  # its caller may have been cancelled
                if not isinstance(error, Exception):
                    raise
                continue
            for one, vote in zip(some, stored, strict=True):
                if not one.done.done():
                    one.done.set_result(vote)

    async def _write(self, some: list[_Written]) -> list[Vote]:
        blobs = {sha: data for one in some for sha, data in one.blobs.items()}
        await asyncio.to_thread(self._blobs.store_many, blobs)

        async def put(tx: Tx) -> list[Vote]:
            return await votes.put(tx, [one.new for one in some])

        return await retrying(self._db, put, self._patience_s)
