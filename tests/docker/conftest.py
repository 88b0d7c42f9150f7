"""A backend on this machine's engine, its data in a temporary directory; nothing of it may be left at the end."""

import shutil
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from service.evidence.integrity.report import IMAGE as DOCUMENTS
from service.sandboxes.contract import Confinement, SandboxBackend, SandboxRefused, SandboxSpec
from service.sandboxes.docker import loopdev, mounts
from service.sandboxes.docker.backend import DockerBackend
from service.sandboxes.docker.room_host import open_rooms
from service.sandboxes.docker.rooms import EngineRooms, RoomsConfig
from service.testing.sandbox_bench import SMALL
from service.testing.sandbox_suite import Bench
from tests.needs import missing


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def backend() -> AsyncIterator[DockerBackend]:
    # Not pytest's own temporary directory: a mount left there would break every later session's clean-up.
    data = Path(tempfile.mkdtemp(prefix="workstead-docker-"))
    made = DockerBackend(data, f"tests-{uuid.uuid4().hex[:8]}")
    yield made
    for sandbox_id in await made.list_ids():
        await made.remove(sandbox_id)
    await made.close()
    left = [str(m) for m in mounts.mounts_below(data)], [d for d, backing in loopdev.table() if data in backing.parents]
    for point in left[0]:
        subprocess.run(["umount", "--lazy", point], check=True)  # noqa: ASYNC221 - at the end of the session
    for device in left[1]:
        subprocess.run(["losetup", "--detach", device], check=True)  # noqa: ASYNC221
    shutil.rmtree(data, ignore_errors=True)
    assert left == ([], [])


async def must_offer(backend: SandboxBackend, runtime: str) -> None:
    """Skip where the engine has no such runtime; where it has one that fails its self-test, that is missing."""
    assert isinstance(backend, DockerBackend)
    check = await backend.check(runtime)
    if not check.offered:
        if "has no runtime" in check.reason:
            pytest.skip(check.reason)
        missing(f"{runtime}: {check.reason}")


async def bench_on(
    backend: DockerBackend, runtime: str, image: str = "base", confinement: Confinement = "default"
) -> Bench:
    """Give a bench on a runtime; skip (in CI: fail) where the engine offers it but the self-test does not."""
    await must_offer(backend, runtime)

    async def reopen() -> SandboxBackend:
        return DockerBackend(backend.data_dir, backend.deployment, runtimes=[runtime])

    environment = await backend.resolve_image(image)
    return Bench(backend, SandboxSpec(environment, limits=SMALL, runtime=runtime, confinement=confinement), reopen)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bench(backend: DockerBackend) -> Bench:
    return await bench_on(backend, "runc")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def rooms() -> AsyncIterator[EngineRooms]:
    """Rooms of image ``documents``."""
    data = Path(tempfile.mkdtemp(prefix="workstead-rooms-"))
    async with open_rooms(data, f"tests-{uuid.uuid4().hex[:8]}", RoomsConfig(2)) as opened:
        if opened is None:
            missing("no engine")
        try:
            await opened.backend.resolve_image(DOCUMENTS)
        except SandboxRefused:
            missing(f"no image {DOCUMENTS} (`make images` builds it)")
        yield opened
    shutil.rmtree(data)
