"""The same stage on the real engine."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from service.lifecycle.context import Context, Timing
from service.lifecycle.ports import Sandboxes
from service.sandboxes.docker.backend import DockerBackend
from service.store.rows import RunRow
from service.testing.memory_sandbox import MemoryHost
from tests.integration.lifecycle.stage import Stage


class DockerStage:
    """A stage, and workers on one engine that come one after the other."""

    def __init__(self, stage: Stage, data: Path) -> None:
        self.stage = stage
        self._data = data
        self._backends: list[DockerBackend] = []

    def context(self, **changes: object) -> Context:
        backend = DockerBackend(self._data, "lifecycle-test", runtimes=("runc",))
        self._backends.append(backend)
        return self.stage.context(sandboxes=Sandboxes(backend), timing=Timing(), **changes)

    async def run(self, code: str, name: str = "python", limits: Mapping[str, float] | None = None) -> RunRow:
        stage = self.stage
        argv = ["python3", "-c", code.replace("{", "{{").replace("}", "}}")]
        run = await stage.submit(await stage.task(), await stage.agent(name, argv=argv), limits=dict(limits or {}))
        await stage.work(self.context(), run.id)
        await stage.grade_all()
        return await stage.row(run.id)

    async def close(self) -> None:
        for backend in self._backends:
            for sandbox_id in await backend.list_ids():
                await backend.remove(sandbox_id)
            await backend.close()


@asynccontextmanager
async def docker_stage(url: str, folder: Path) -> AsyncGenerator[DockerStage]:
    machine = MemoryHost()
    async with Stage.open(url, folder, machine) as stage:
        made = DockerStage(stage, folder / "data")
        try:
            yield made
        finally:
            await made.close()
            machine.close()


@pytest.fixture
async def docker(database_url: str, tmp_path: Path) -> AsyncIterator[DockerStage]:
    async with docker_stage(database_url, tmp_path) as made:
        yield made
