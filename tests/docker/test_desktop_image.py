"""Image ``desktop`` under the profile that its sandboxes have: the contract suite, Chromium's own sandbox, the session."""

import pytest
from _pytest.mark import ParameterSet

from service.sandboxes.docker.backend import RUNTIMES, DockerBackend
from service.testing.sandbox_suite import SUITE, Check
from tests.docker.conftest import bench_on

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUICK = {"dangerous_calls_are_refused", "a_namespace_of_its_own_gives_nothing_of_the_host", "the_program_has_no_power"}


def case(runtime: str, check: Check) -> ParameterSet:
    marks = [pytest.mark.fault(*check.faults)] if check.faults else []
    if runtime != "runc" or check.name not in QUICK:
        marks.append(pytest.mark.slow)  # what is not about confinement runs on image base in `make test`
    return pytest.param(runtime, check, id=f"{runtime}-{check.name}", marks=marks)


@pytest.mark.parametrize(
    ("runtime", "check"), [case(r, c) for r in RUNTIMES for c in SUITE if not c.runtimes or r in c.runtimes]
)
async def test_contract(backend: DockerBackend, runtime: str, check: Check) -> None:
    await check.run(await bench_on(backend, runtime, "desktop", "desktop"))
