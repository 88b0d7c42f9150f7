"""The gateway in this process on real sockets, a real PostgreSQL, the scripted provider; one of each per module."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from service.models.scripted.server import Scripted
from service.supervisor.postgres import EmbeddedPostgres
from tests.fixtures.postgres import new_database
from tests.integration.gateway.bench import GateBench


@pytest.fixture(scope="module")
def provider() -> Iterator[Scripted]:
    with Scripted() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_bench(
    postgres_server: EmbeddedPostgres,
    database_template: str,
    provider: Scripted,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[GateBench]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    with new_database(postgres_server, database_template) as url:
        async with GateBench.open(url, provider, folder) as made:
            yield made


@pytest_asyncio.fixture(loop_scope="module")
async def bench(shared_bench: GateBench) -> AsyncGenerator[GateBench]:
    """Tests see what was asked since they began."""
    shared_bench.begin()
    yield shared_bench
    await shared_bench.close_clients()
