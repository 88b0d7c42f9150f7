"""A backend on this machine's engine, its data in a temporary directory; nothing of it may be left at the end."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from service.sandboxes.contract import SandboxBackend, SandboxSpec
from service.sandboxes.docker import loopdev, mounts
from service.sandboxes.docker.backend import DockerBackend
from service.testing.sandbox_bench import SMALL
from service.testing.sandbox_suite import Bench
from tests.needs import missing

DEPLOYMENT = "tests"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def backend(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DockerBackend]:
    data = tmp_path_factory.mktemp("docker")
    made = DockerBackend(data, DEPLOYMENT + data.name.removeprefix("docker"))
    yield made
    for sandbox_id in await made.list_ids():
        await made.remove(sandbox_id)
    await made.close()
    assert not [backing for _, backing in loopdev.table() if data in backing.parents]
    assert not mounts.mounts_below(data)


async def bench_on(backend: DockerBackend, runtime: str) -> Bench:
    """Give a bench on a runtime; skip (in CI: fail) where the engine offers it but the self-test does not."""
    check = await backend.check(runtime)
    if not check.offered:
        reason = check.reason
        if "has no runtime" in reason:
            pytest.skip(reason)
        missing(f"{runtime}: {reason}")

    async def reopen() -> SandboxBackend:
        return DockerBackend(backend.data_dir, backend.deployment, runtimes=[runtime])

    return Bench(backend, SandboxSpec(await backend.resolve_image("base"), limits=SMALL, runtime=runtime), reopen)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bench(backend: DockerBackend) -> Bench:
    return await bench_on(backend, "runc")
