"""A migrated database and its objects for each test of the store."""

from collections.abc import AsyncIterator

import pytest

from service.store.database import Database
from tests.integration.store.seeds import Seeds, seed


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    database = Database(database_url, pool_size=24)
    yield database
    await database.close()


@pytest.fixture
async def seeds(db: Database) -> Seeds:
    async with db.transaction() as tx:
        return await seed(tx, "alpha")
