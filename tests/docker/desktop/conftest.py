"""One sandbox of image ``desktop`` for all tests here, under the profile that runs have, and a deskd on its screen."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from service.domain.limits import GIB, MIB, Limits
from service.sandboxes.contract import Sandbox, SandboxSpec
from service.sandboxes.docker.backend import DockerBackend
from tests.docker.desktop.driver import INSIDE, Deskd, do, end, put_sources, shell, start

LIMITS = Limits(memory_bytes=3 * GIB, disk_bytes=512 * MIB, inodes=40_000, shm_bytes=64 * MIB, pids=512)
Events = Callable[[], Awaitable[list[dict[str, Any]]]]


async def a_desktop(backend: DockerBackend) -> Sandbox:
    image = await backend.resolve_image("desktop")
    sandbox = await backend.make(SandboxSpec(image, limits=LIMITS, confinement="desktop"))
    await put_sources(sandbox)
    for program in ("probe.py", "blinking.py", "copying.py"):
        await sandbox.write_file(f"{INSIDE}/{program}", Path(__file__).with_name(program).read_bytes())
    return sandbox


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sandbox(backend: DockerBackend) -> AsyncIterator[Sandbox]:
    made = await a_desktop(backend)
    yield made
    await backend.remove(made.id)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def deskd(sandbox: Sandbox) -> AsyncIterator[Deskd]:
    opened = await Deskd.open(sandbox)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="session")
async def probed(sandbox: Sandbox, deskd: Deskd, request: pytest.FixtureRequest) -> AsyncIterator[Events]:
    """A window that writes down its input; what it wrote since it was last asked is returned."""
    mode = getattr(request, "param", "still")
    await shell(sandbox, "rm -f /tmp/probe.log")
    await start(sandbox, ["python3", f"/workspace/{INSIDE}/probe.py", mode])
    await until_log(sandbox, "shown")
    # The first key goes to whatever is active: nothing is typed past the window.
    await deskd.done(do("move", x=400, y=300), do("wait", seconds=0.2))
    read = 0

    async def events() -> list[dict[str, Any]]:
        nonlocal read
        lines = (await shell(sandbox, "cat /tmp/probe.log")).splitlines()
        fresh, read = lines[read:], len(lines)
        return [json.loads(line) for line in fresh]

    await events()
    yield events
    await end(sandbox, "probe.py")
    await deskd.done(do("release_all"))


async def until_log(sandbox: Sandbox, word: str) -> None:
    said = await shell(
        sandbox, f"for n in $(seq 200); do grep -q {word} /tmp/probe.log && echo yes && break; sleep 0.05; done"
    )
    assert said.strip() == "yes"
