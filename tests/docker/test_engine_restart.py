"""The Docker daemon itself dies or is upgraded: a sandbox goes on where the engine lets it, and else is ours to lose."""

import asyncio
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from service.domain.run_states import ContainerState, EndedBecause, Evidence, decide_cause
from service.sandboxes.contract import Command, EngineError, LauncherLost, Sandbox, SandboxSpec
from service.sandboxes.docker import loopdev
from service.sandboxes.docker.backend import DockerBackend
from service.testing.sandbox_bench import ENV, SMALL, drain
from tests.docker.own_engine import OwnEngine
from tests.journeys.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="session")]
LINES = 300
COUNT = Command(["sh", "-c", f"for i in $(seq {LINES}); do echo $i; sleep 0.05; done"], ENV)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[OwnEngine]:
    folder = Path(tempfile.mkdtemp(prefix="dockerd-", dir="/var/tmp"))
    folder.chmod(0o755)
    own = OwnEngine(folder, live_restore=request.param)
    try:
        own.start()
        own.load(Stack.image("base"))
        yield own
    finally:
        own.close()
        shutil.rmtree(folder)


@pytest_asyncio.fixture(loop_scope="session")
async def sandbox(engine: OwnEngine) -> AsyncIterator[Sandbox]:
    image = Stack.image("base")
    backend = DockerBackend(engine.folder / "service", "restarts", engine.url, {"base": image}, runtimes=["runc"])
    made = await backend.make(SandboxSpec(await backend.resolve_image("base"), limits=SMALL))
    await made.start(COUNT)
    yield made
    try:
        await made.destroy()
    except EngineError as error:
        if "active mounts" not in str(error):
            raise
        # Some engines count mounts wrongly after a live restore (moby 44422), until their next start.
        assert loopdev.devices_below(engine.folder) == []
        await asyncio.to_thread(engine.end, signal.SIGTERM)
        await asyncio.to_thread(engine.start)
        await backend.remove(made.id)
    assert await backend.list_ids() == []
    await backend.close()


@pytest.mark.parametrize("engine", [True], indirect=True, ids=["live restore"])
async def test_a_daemon_that_is_killed_takes_no_output_and_no_sandbox_with_it(
    engine: OwnEngine, sandbox: Sandbox
) -> None:
    reading = asyncio.create_task(drain(sandbox))
    await asyncio.sleep(1)
    await asyncio.to_thread(engine.end, signal.SIGKILL)
    await asyncio.sleep(1)
    assert not reading.done()
    await asyncio.to_thread(engine.start)
    report = await sandbox.inspect()
    assert (report.state, report.engine_restarted) == (ContainerState.RUNNING, True)
    ran = await reading
    assert ran.stdout == b"".join(b"%d\n" % i for i in range(1, LINES + 1))
    assert (await sandbox.exec(["true"])).code == 0


@pytest.mark.parametrize("engine", [False], indirect=True, ids=["no live restore"])
async def test_a_daemon_that_ends_its_containers_has_lost_the_sandbox_and_not_the_agent(
    engine: OwnEngine, sandbox: Sandbox
) -> None:
    reading = asyncio.create_task(drain(sandbox))
    await asyncio.sleep(1)
    await asyncio.to_thread(engine.end, signal.SIGTERM)
    await asyncio.to_thread(engine.start)
    with pytest.raises(LauncherLost):
        await reading
    report = await sandbox.inspect()
    assert report.state is not ContainerState.RUNNING
    assert report.engine_restarted
    evidence = Evidence(container=report.state, oom_kills=report.oom_kills, engine_restarted=report.engine_restarted)
    assert decide_cause(evidence) is EndedBecause.SANDBOX_LOST
