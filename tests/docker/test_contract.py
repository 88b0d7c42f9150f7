"""The whole contract suite on the real engine: runc, and gVisor where it is offered."""

import pytest

from service.sandboxes.docker.backend import RUNTIMES, DockerBackend
from service.testing.sandbox_suite import SUITE, Check
from tests.docker.conftest import bench_on

pytestmark = pytest.mark.asyncio(loop_scope="session")

CASES = [
    pytest.param(r, c, id=f"{r}-{c.name}", marks=[pytest.mark.fault(*c.faults)] if c.faults else [])
    for r in RUNTIMES
    for c in SUITE
    if not c.runtimes or r in c.runtimes
]


@pytest.mark.parametrize(("runtime", "check"), CASES)
async def test_contract(backend: DockerBackend, runtime: str, check: Check) -> None:
    await check.run(await bench_on(backend, runtime))
