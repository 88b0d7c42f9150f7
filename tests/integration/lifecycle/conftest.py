"""A whole lifecycle on the memory sandbox and a real PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.testing.memory_sandbox import MemoryBackend, MemoryHost
from tests.integration.conftest import database_template, database_url, empty_database_url, postgres_server
from tests.integration.lifecycle.stage import Stage

__all__ = ["database_template", "database_url", "empty_database_url", "postgres_server", "stage"]


@pytest.fixture
async def stage(database_url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    host = MemoryHost()
    async with Stage.open(database_url, tmp_path, host) as made:
        yield made
        backend = MemoryBackend(host)
        for sandbox_id in list(host.sandboxes):
            await backend.remove(sandbox_id)
    host.close()
