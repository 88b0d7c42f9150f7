"""Remote drivers: the API, a worker with its bridge, memory sandboxes and a real PostgreSQL, in one process."""

from collections.abc import AsyncIterator

import pytest

from tests.integration.driving.remote import Remote
from tests.integration.lifecycle.conftest import stage
from tests.integration.lifecycle.stage import Stage

__all__ = ["remote", "stage"]


@pytest.fixture
async def remote(stage: Stage) -> AsyncIterator[Remote]:
    async with Remote.open(stage) as made:
        yield made
