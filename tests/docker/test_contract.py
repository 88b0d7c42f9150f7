"""The whole contract suite on the real engine: runc, and gVisor where it is offered."""

import pytest
from _pytest.mark import ParameterSet

from service.sandboxes.docker.backend import RUNTIMES, DockerBackend
from service.testing.sandbox_suite import SUITE, Check
from tests.docker.conftest import bench_on

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUICK_ON_GVISOR = {
    "output_has_two_streams_and_an_end",
    "a_helper_takes_and_gives_more_than_any_buffer",
    "what_listens_inside_can_be_dialled",
    "links_and_special_files_are_entries",
    "the_program_has_no_power",
    "there_is_no_network",
    "a_program_over_memory_is_counted",
}


def case(runtime: str, check: Check) -> ParameterSet:
    marks = [pytest.mark.fault(*check.faults)] if check.faults else []
    if runtime != "runc" and check.name not in QUICK_ON_GVISOR:
        marks.append(pytest.mark.slow)  # the same suite again, three times slower: only in `make test-all`
    return pytest.param(runtime, check, id=f"{runtime}-{check.name}", marks=marks)


CASES = [case(r, c) for r in RUNTIMES for c in SUITE if not c.runtimes or r in c.runtimes]


@pytest.mark.parametrize(("runtime", "check"), CASES)
async def test_contract(backend: DockerBackend, runtime: str, check: Check) -> None:
    await check.run(await bench_on(backend, runtime))
