"""What an operator does to the data: bring the schema up, make a token, remove what is old."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from service.settings import Settings
from service.store import blob_refs, changes, idempotency, migrate, operations, projects, tokens
from service.store.blobs import BlobStore
from service.store.database import Database
from service.supervisor.postgres import EmbeddedPostgres

T = TypeVar("T")


def run_migrate(_: argparse.Namespace) -> None:
    migrate.upgrade(Settings().require_database_url())


def run_token(args: argparse.Namespace) -> None:
    """Print a new token's secret. Without a database URL the embedded PostgreSQL of the data directory is used."""

    async def mint(db: Database) -> str:
        async with db.transaction() as tx:
            owner = await projects.find_or_create(tx, args.project)
            return (await tokens.mint(tx, owner.id, args.scope or ["admin"], args.note))[1]

    print(asyncio.run(_with_database(Settings(), mint)))  # noqa: T201


def run_gc(_: argparse.Namespace) -> None:
    """Remove what is old: uploads never used, idempotency keys, tombstones, operations; and blobs that nothing needs."""
    settings = Settings()

    async def collect(db: Database) -> int:
        async with db.transaction() as tx:
            await idempotency.purge(tx)
            await changes.purge(tx)
            await operations.purge(tx)
            await blob_refs.drop_old_uploads(tx)
        return await BlobStore(settings.blob_dir).gc(db)

    print(f"{asyncio.run(_with_database(settings, collect))} bytes freed")  # noqa: T201


async def _with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Run ``work`` on the database of the settings, or on the embedded one that ``serve`` is running here."""
    url = settings.require_database_url() if settings.database_url else EmbeddedPostgres(settings.data_dir).url
    db = Database(url, pool_size=1)
    try:
        return await work(db)
    finally:
        await db.close()
