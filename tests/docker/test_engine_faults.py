"""The engine hangs, resets, talks nonsense or stops mid-answer: always an EngineError in time, never a lost sandbox."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.domain.run_states import ContainerState
from service.sandboxes.contract import EngineError
from service.sandboxes.docker import engine as engine_module
from service.sandboxes.docker.backend import DockerBackend
from service.sandboxes.docker.engine import DEFAULT_URL
from service.testing.sandbox_bench import ENV, Bench
from tests.docker.engine_proxy import Fault, faulty_engine

pytestmark = pytest.mark.asyncio(loop_scope="session")
FAULTS: tuple[Fault, ...] = ("hang", "reset", "garbage", "cut", "trickle")
RARE = ("garbage", "trickle")
ENGINE = Path(DEFAULT_URL.removeprefix("unix://"))


@contextmanager
def short_deadlines() -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CREATE_S", "START_S", "INSPECT_S", "KILL_S", "REMOVE_S", "LIST_S"):
            patch.setattr(engine_module, name, 2.0)
        yield


@pytest.mark.fault(113)
@pytest.mark.parametrize("fault", [pytest.param(f, marks=[pytest.mark.slow] if f in RARE else []) for f in FAULTS])
async def test_every_call_ends_in_time_and_the_sandbox_is_not_lost(
    bench: Bench, backend: DockerBackend, tmp_path: Path, fault: Fault
) -> None:
    async with bench.sandbox() as made, faulty_engine(tmp_path, ENGINE) as (proxy, url):
        await _shut(backend, made.id)
        through = DockerBackend(backend.data_dir, backend.deployment, url, runtimes=["runc"])
        sandbox = await through.attach(made.id)
        proxy.fault = fault
        with short_deadlines():
            for call in (sandbox.inspect, sandbox.kill, through.list_ids):
                began = time.monotonic()
                with pytest.raises(EngineError):
                    await call()
                assert time.monotonic() - began < 8
        proxy.fault = "none"
        assert (await sandbox.exec(["echo", "there"], env=ENV)).stdout == b"there\n", "the launcher is not the engine"
        assert (await backend.engine.inspect(f"{backend.deployment}-{made.id}"))["State"]["Running"] or fault != "hang"
        await through.close()


async def _shut(backend: DockerBackend, sandbox_id: str) -> None:
    """Let go of a sandbox in this process, so that another backend can attach to it."""
    await (await backend.attach(sandbox_id)).shut()


@pytest.mark.fault(113)
async def test_a_make_that_fails_is_cleaned_up_when_the_engine_answers_again(
    bench: Bench, backend: DockerBackend, tmp_path: Path
) -> None:
    async with faulty_engine(tmp_path, ENGINE) as (proxy, url):
        through = DockerBackend(backend.data_dir, backend.deployment, url, runtimes=["runc"])
        assert list(await through.offered_runtimes()) == ["runc"]
        before = await backend.list_ids()
        proxy.fault = "reset"
        with pytest.raises(EngineError):
            await through.make(bench.spec)
        for sandbox_id in set(await backend.list_ids()) - set(before):  # what a reaper does
            await backend.remove(sandbox_id)
        assert await backend.list_ids() == before
        proxy.fault = "none"
        sandbox = await through.make(bench.spec)
        assert (await sandbox.inspect()).state is ContainerState.RUNNING
        await sandbox.destroy()
        await through.close()
