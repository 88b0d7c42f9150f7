"""A whole lifecycle on the memory sandbox and a real PostgreSQL."""

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.testing.memory_sandbox import MemoryBackend, MemoryHost
from tests.integration.lifecycle.stage import Stage

MACHINES = Path("/workspace")


@contextmanager
def _machine_left_alone() -> Generator[None]:
    """Programs in a memory sandbox run on this machine: one that goes to /workspace by its name writes there."""
    before = _times(MACHINES)
    yield
    assert _times(MACHINES) == before, "a test wrote to the machine's own /workspace"


def _times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")] if path.exists()}


@pytest.fixture
async def stage(database_url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    host = MemoryHost()
    with _machine_left_alone():
        async with Stage.open(database_url, tmp_path, host) as made:
            yield made
            backend = MemoryBackend(host)
            for sandbox_id in list(host.sandboxes):
                await backend.remove(sandbox_id)
    host.close()
