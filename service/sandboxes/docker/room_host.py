"""Rooms of one process of this host: a data directory and a deployment id of its own, held by a lock.

Several processes of one data directory never remove each other's rooms, and none removes a run's sandbox: each takes
the lowest free number, and with it ``<data>/grading/<number>`` and the id ``<deployment>-g<number>``. The kernel gives
the lock back when the process dies; whoever starts next removes what is left under every number that nobody holds.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import structlog

from service.sandboxes.contract import SandboxBackend, SandboxError
from service.sandboxes.docker.backend import DockerBackend
from service.sandboxes.docker.engine import DEFAULT_URL
from service.sandboxes.docker.rooms import EngineRooms, RoomsConfig, remove_all

FOLDER = "grading"
MAX_PROCESSES = 64
CALM_S = 5.0
"""How long the end of a process waits for its start to be over."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
MakeBackend = Callable[[Path, str], SandboxBackend]


@asynccontextmanager
async def open_rooms(
    data_dir: Path,
    deployment: str,
    config: RoomsConfig,
    *,
    docker_url: str | None = None,
    images: Mapping[str, str] | None = None,
) -> AsyncGenerator[EngineRooms | None]:
    """Give this process's rooms, or null where this machine has no engine. Raises OSError (data directory unusable)."""

    def make(folder: Path, name: str) -> SandboxBackend:
        runtimes = dict.fromkeys(("runc", *config.code_runtimes))
        return DockerBackend(folder, name, docker_url, images, runtimes=tuple(runtimes))

    if not has_engine(docker_url):
        yield None
        return
    async with rooms_of_process(data_dir, deployment, config, make) as rooms:
        yield rooms


@asynccontextmanager
async def rooms_of_process(
    data_dir: Path, deployment: str, config: RoomsConfig, make: MakeBackend
) -> AsyncGenerator[EngineRooms]:
    with _held(data_dir / FOLDER) as number:
        backend = make(data_dir / FOLDER / str(number), f"{deployment}-g{number}")
        rooms = EngineRooms(backend, config)
        sweeping = asyncio.create_task(_sweep(rooms, data_dir / FOLDER, deployment, make))
        try:
            yield rooms
        finally:
            # A self-test that is cut off while the engine makes its sandbox leaves things for the next process to sweep.
            await asyncio.wait({sweeping}, timeout=CALM_S)
            sweeping.cancel()
            await asyncio.gather(sweeping, return_exceptions=True)
            await rooms.close()
            await backend.close()


def has_engine(docker_url: str | None) -> bool:
    """Tell whether there is anything to connect to; an engine that is down for now counts."""
    scheme, _, path = (docker_url or DEFAULT_URL).partition("://")
    return scheme != "unix" or Path(path).exists()


async def _sweep(rooms: EngineRooms, folder: Path, deployment: str, make: MakeBackend) -> None:
    """Remove what dead processes left: under our number, then under the numbers that nobody holds. Best effort."""
    try:
        await rooms.sweep()
        await rooms.backend.offered_runtimes()  # self-tests take seconds, which the first room would wait for
        for number in range(MAX_PROCESSES):
            if (folder / f"{number}.lock").exists():
                with _try_hold(folder, number) as free:
                    if free:
                        await _remove_left(make(folder / str(number), f"{deployment}-g{number}"))
    except SandboxError as error:
        log.warning("rooms_not_swept", error=str(error))


async def _remove_left(backend: SandboxBackend) -> None:
    try:
        await remove_all(backend)
    finally:
        await backend.close()


@contextmanager
def _held(folder: Path) -> Generator[int]:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number in range(MAX_PROCESSES):
        with _try_hold(folder, number) as free:
            if free:
                yield number
                return
    raise OSError(f"{MAX_PROCESSES} processes hold rooms in {folder}")


@contextmanager
def _try_hold(folder: Path, number: int) -> Generator[bool]:
    """Hold a number's lock, or say that another process does."""
    fd = os.open(folder / f"{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)
