"""The gateway in this process on real sockets, a real PostgreSQL, the scripted provider."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from service.models.scripted.server import Scripted
from tests.integration.conftest import database_template, database_url, empty_database_url, postgres_server
from tests.integration.gateway.bench import GateBench

__all__ = ["bench", "database_template", "database_url", "empty_database_url", "postgres_server", "provider"]


@pytest.fixture
def provider() -> Iterator[Scripted]:
    with Scripted() as running:
        yield running


@pytest.fixture
async def bench(database_url: str, provider: Scripted, tmp_path: Path) -> AsyncIterator[GateBench]:
    async with GateBench.open(database_url, provider, tmp_path) as made:
        yield made
