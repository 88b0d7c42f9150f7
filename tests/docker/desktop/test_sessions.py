"""Sessions with the real action server: killed, stopped, spoken over, left by a worker that died."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from service.desktop import session as sessions
from service.desktop.desktops import Desktops, Opening
from service.desktop.environment import SCREEN_ENVIRONMENT, VNC_PORT
from service.desktop.session import DesktopSession
from service.domain.agents import Surface
from service.domain.desktop import Batch, DesktopAction, Shot, Size
from service.sandboxes.contract import LauncherLost, Sandbox, SandboxSpec
from service.sandboxes.docker.backend import DockerBackend
from service.sandboxes.docker.sandbox import DockerSandbox
from service.testing.sandbox_bench import ENV, python
from tests.docker.desktop.conftest import LIMITS

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]
OPENING = Opening(
    {**ENV, "HOME": "/workspace/.home", **SCREEN_ENVIRONMENT}, Surface.DESKTOP, Size(width=1280, height=800)
)
LOOK = Batch(shot=Shot(format="jpeg"))
DOWN = DesktopAction.model_validate({"type": "mouse_down", "x": 640, "y": 300})
WAIT = DesktopAction.model_validate({"type": "wait", "seconds": 60})
OURS = f"pgrep -n -f '^python3 -I [/]{sessions.PROGRAM[-1][1:]}'"
SPEAK_OVER = """
import os, sys
for fd in os.listdir(f"/proc/{sys.argv[1]}/fd"):
    path = f"/proc/{sys.argv[1]}/fd/{fd}"
    try:
        if os.readlink(path).startswith("pipe:"):
            with open(path, "wb", buffering=0) as pipe:
                pipe.write(b"\\0\\0\\0\\2\\0\\0\\0\\0{}")
    except OSError as error:
        print(error)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sandbox(backend: DockerBackend) -> AsyncIterator[Sandbox]:
    """Of our own: the last test here takes its connection away."""
    spec = SandboxSpec(await backend.resolve_image("desktop"), limits=LIMITS, confinement="desktop")
    made = await backend.make(spec)
    yield made
    await backend.remove(made.id)


@pytest_asyncio.fixture(loop_scope="session")
async def desktops() -> AsyncIterator[Desktops]:
    made = Desktops()
    yield made
    await made.close()


async def deskd_pid(sandbox: Sandbox) -> int:
    return int((await sandbox.exec(["sh", "-c", OURS], env=ENV)).stdout)


async def sees(session: DesktopSession) -> list[str]:
    """Look, and return what is held."""
    seen = await session.perform(LOOK)
    assert seen.error is None, seen.detail
    assert seen.shot is not None
    assert seen.state is not None
    return seen.state.held


async def test_a_killed_server_costs_its_batch_and_nothing_else(sandbox: Sandbox, desktops: Desktops) -> None:
    session = await desktops.of(sandbox, OPENING)
    under_way = asyncio.create_task(session.perform(Batch(actions=[DOWN, WAIT])))
    pid = await deskd_pid(sandbox)
    await asyncio.sleep(0.5)
    assert (await sandbox.exec(["kill", "-9", str(pid)], env=ENV)).code == 0
    assert (await under_way).error == "desktop_lost"
    assert await sees(await desktops.of(sandbox, OPENING)) == []


async def test_who_speaks_in_its_place_ends_the_session(sandbox: Sandbox, desktops: Desktops) -> None:
    """The agent has deskd's user: it can write into deskd's pipes."""
    session = await desktops.of(sandbox, OPENING)
    assert await sees(session) == []
    await python(sandbox, SPEAK_OVER, str(await deskd_pid(sandbox)))
    async with asyncio.timeout(30):
        while (await session.perform(LOOK)).error is None:  # noqa: ASYNC110 - only a look can tell
            await asyncio.sleep(0.05)
    assert session.lost is not None
    assert session.lost.type == "bad_answer"
    assert await sees(await desktops.of(sandbox, OPENING)) == []


async def test_a_server_that_was_stopped_is_not_waited_for(
    sandbox: Sandbox, desktops: Desktops, monkeypatch: pytest.MonkeyPatch
) -> None:
    def soon(_: Batch) -> float:
        return 1.5

    session = await desktops.of(sandbox, OPENING)
    pid = await deskd_pid(sandbox)
    assert (await sandbox.exec(["kill", "-STOP", str(pid)], env=ENV)).code == 0
    with monkeypatch.context() as patched:
        patched.setattr(sessions, "seconds_of", soon)
        assert (await session.perform(LOOK)).error == "timed_out"
    assert await sees(await desktops.of(sandbox, OPENING)) == []
    async with asyncio.timeout(30):  # its input ended, and it did not go by itself
        while (await sandbox.exec(["kill", "-0", str(pid)], env=ENV)).code == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def test_a_stopped_batch_lets_go(sandbox: Sandbox, desktops: Desktops) -> None:
    session = await desktops.of(sandbox, OPENING)
    leaving = asyncio.create_task(session.perform(Batch(actions=[DOWN, WAIT])))
    await asyncio.sleep(0.5)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert session.lost is None
    assert await sees(session) == []


async def test_a_successor_of_a_killed_worker_finds_the_screen(backend: DockerBackend, sandbox: Sandbox) -> None:
    """The connection went with the worker, and with it the helper: it let go of everything first."""
    before = Desktops()
    session = await before.of(sandbox, OPENING)
    under_way = asyncio.create_task(session.perform(Batch(actions=[DOWN, WAIT])))
    await asyncio.sleep(0.5)
    successor = DockerBackend(backend.data_dir, backend.deployment, runtimes=["runc"])
    attached = await successor.attach(sandbox.id)
    assert isinstance(sandbox, DockerSandbox)
    sandbox.link.drop_connection()  # as kill -9 does: the launcher goes to whoever listens now
    after = Desktops()
    try:
        with pytest.raises(LauncherLost):
            await under_way
        assert await sees(await after.of(attached, OPENING)) == []
        with await attached.dial(VNC_PORT) as screen:
            assert await asyncio.get_running_loop().sock_recv(screen, 12) == b"RFB 003.008\n"
    finally:
        await before.close()
        await after.close()
        await successor.close()
