"""Many database-wide locks of one process on one connection: for what is held by the dozen and for minutes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg

from service.domain.errors import Unavailable
from service.store.database import connect


class SharedLocks:
    """The connection is there while anything is held. Should it be lost, so are the locks: use them for what may be done
    twice, only had better not be."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._held: set[str] = set()
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._users = 0
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncGenerator[bool]:
        """Hold the lock for the length of the block; False: somebody else has it, here or elsewhere. Raises Unavailable."""
        if name in self._held:
            yield False
            return
        self._held.add(name)
        self._users += 1
        try:
            if not await self._run("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", name):
                yield False
                return
            try:
                yield True
            finally:
                with suppress(Unavailable):  # a lost connection has given it back
                    await self._run("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", name)
        finally:
            self._held.discard(name)
            self._users -= 1
            await self._close_unused()

    async def _run(self, query: str, name: str) -> bool:
        connection = await self._open()
        try:
            cursor = await connection.execute(query.encode(), [name])
            row = await cursor.fetchone()
        except psycopg.Error as error:
            raise Unavailable("database_unavailable", "the database does not answer") from error
        return bool(row and row[0])

    async def _open(self) -> psycopg.AsyncConnection[Any]:
        async with self._opening:
            if self._connection is None or self._connection.closed:
                self._connection = await connect(self._url)
            return self._connection

    async def _close_unused(self) -> None:
        async with self._opening:
            if not self._users and self._connection is not None:
                connection, self._connection = self._connection, None
                await connection.close()
