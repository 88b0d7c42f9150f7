"""Rooms on a sandbox engine: so many at once, each used once, each destroyed in any case."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import structlog

from service.domain.limits import Limits
from service.sandboxes.contract import EngineError, Sandbox, SandboxBackend, SandboxError, SandboxRefused, SandboxSpec

PLAIN_RUNTIMES = ("runc", "runsc-planted")
IMAGE_S = 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RoomsConfig:
    places: int = 4
    """Most rooms at once, the ones that are being destroyed included."""
    code_runtimes: Sequence[str] = ("runsc-planted", "runc")
    """Runtimes for rooms that run candidates' programs, best first; the first one that the engine offers is taken."""
    patience_s: float = 60.0
    """How long an engine that fails is asked again."""


class EngineRooms:
    """Implements ``Rooms``. What an earlier process of this backend left is removed before the first room is made."""

    def __init__(self, backend: SandboxBackend, config: RoomsConfig | None = None) -> None:
        self.backend = backend
        self._config = config or RoomsConfig()
        self._places = asyncio.Semaphore(self._config.places)
        self._sweeping = asyncio.Lock()
        self._swept = False
        self._images: dict[str, tuple[str, float]] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def open(
        self,
        environment: str,
        limits: Limits,
        *,
        in_memory: bool = False,
        runs_code: bool = False,
        verifier: bool = False,
    ) -> AsyncGenerator[Sandbox]:
        await self._places.acquire()
        try:
            spec = SandboxSpec(environment, None, limits, in_memory=in_memory, verifier=verifier)
            room = await self._make(spec, runs_code)
        except BaseException:
            self._places.release()
            raise
        try:
            yield room
        finally:
            leaving = asyncio.create_task(self._leave(room), name=f"leave {room.id}")
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def sweep(self) -> None:
        """Remove what is left of an earlier process, once. Raises SandboxError."""
        async with self._sweeping:
            if not self._swept:
                await remove_all(self.backend)
                self._swept = True

    async def close(self, wait_s: float = 10.0) -> None:
        """Wait for rooms that are being destroyed, so long; the next process's sweep finds the rest."""
        if self._leaving:
            _, late = await asyncio.wait(self._leaving, timeout=wait_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _make(self, wanted: SandboxSpec, runs_code: bool) -> Sandbox:
        """Make a room as ``wanted``, whose image is still the name of one."""
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + self._config.patience_s, FIRST_PAUSE_S
        while True:
            try:
                await self.sweep()
                image = await self._image(wanted.environment)
                runtime = await self._runtime(runs_code)
                return await self.backend.make(replace(wanted, environment=image, runtime=runtime))
            except EngineError as error:
                if loop.time() + pause > until:
                    raise
                log.warning("room_waits_for_engine", error=str(error))
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _image(self, environment: str) -> str:
        """Return the image's id; the engine is asked for what a name means once a minute."""
        now = asyncio.get_running_loop().time()
        image, asked_at = self._images.get(environment, ("", -IMAGE_S))
        if now - asked_at >= IMAGE_S:
            image = await self.backend.resolve_image(environment)
            self._images[environment] = (image, now)
        return image

    async def _runtime(self, runs_code: bool) -> str:
        offered = await self.backend.offered_runtimes()
        if not offered:  # every engine has one: its self-test failed, as on a host that is too busy
            raise EngineError("no_runtime", "no runtime passed its self-test")
        wanted = self._config.code_runtimes if runs_code else PLAIN_RUNTIMES
        found = next((name for name in wanted if name in offered), None)
        if found is None:
            raise SandboxRefused("runtime_not_offered", f"this host offers none of {', '.join(wanted)}")
        return found

    async def _leave(self, room: Sandbox) -> None:
        """Destroy the room, again until it works: a candidate's program may still run in it, so its place stays taken."""
        pause = FIRST_PAUSE_S
        try:
            while True:
                try:
                    await room.destroy()
                except (SandboxError, OSError) as error:
                    log.warning("room_not_removed", sandbox=room.id, error=str(error))
                else:
                    return
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
        finally:
            self._places.release()


async def remove_all(backend: SandboxBackend) -> None:
    """Remove every sandbox of this backend's deployment. Raises SandboxError."""
    for sandbox_id in await backend.list_ids():
        await backend.remove(sandbox_id)
        log.info("room_reaped", sandbox=sandbox_id)
