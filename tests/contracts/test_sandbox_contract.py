"""The semantic part of the sandbox contract on the memory fake; tests/docker runs the whole on the real engine."""

from collections.abc import AsyncIterator

import pytest

from service.sandboxes.contract import SandboxBackend, SandboxSpec
from service.testing.memory_sandbox import MemoryBackend, MemoryHost
from service.testing.sandbox_bench import SMALL
from service.testing.sandbox_suite import SUITE, Bench, Check

SEMANTIC = [
    pytest.param(c, id=c.name, marks=[pytest.mark.fault(*c.faults)] if c.faults else []) for c in SUITE if c.semantic
]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    host = MemoryHost()
    backend = MemoryBackend(host)

    async def reopen() -> SandboxBackend:
        return MemoryBackend(host)

    yield Bench(backend, SandboxSpec(await backend.resolve_image("base"), limits=SMALL), reopen)
    for sandbox_id in await backend.list_ids():
        await backend.remove(sandbox_id)
    host.close()


@pytest.mark.parametrize("check", SEMANTIC)
async def test_memory_fake(bench: Bench, check: Check) -> None:
    await check.run(bench)


async def test_suite_has_names_once() -> None:
    names = [c.name for c in SUITE]
    assert len(names) == len(set(names))
