"""The host's heartbeat, and what a worker does that cannot write it: pause its sandboxes, then kill them.

It does so before the watchdog may give its runs to somebody else, so that no run works twice at once.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol

import structlog

from service.domain.errors import Fault, Unavailable
from service.lifecycle.ports import Sandboxes
from service.sandboxes.contract import SandboxError
from service.store import hosts
from service.store.database import Database
from service.store.rows import Json

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class HostTaken(Fault):
    """Another process owns the host id now, or the watchdog declared it lost: this process must end."""

    def __init__(self, host_id: str) -> None:
        super().__init__("host_taken", f"host {host_id} is not this process's any more")


@dataclass(frozen=True, slots=True)
class Beating:
    every_s: float = 5.0
    pause_after_s: float = 60.0
    kill_after_s: float = 120.0
    """Less than the watchdog's time for lost hosts."""


class Gauge(Protocol):
    """What a heartbeat tells of the machine."""

    async def read(self) -> Json:
        """Return the facts of now; soon, whatever the machine's disks do."""
        ...


class NoGauge:
    async def read(self) -> Json:
        return {}


async def heartbeat(
    db: Database,
    host_id: str,
    epoch: str,
    sandboxes: Sandboxes,
    times: Beating,
    gauge: Gauge | None = None,
    drained: asyncio.Event | None = None,
) -> None:
    """Beat for ever, with the gauge's facts; ``drained`` is set while the host is told to drain. Raises HostTaken."""
    gauge = gauge or NoGauge()
    loop = asyncio.get_running_loop()
    guard = _Guard(sandboxes, times)
    last = loop.time()
    while True:
        facts = await gauge.read()
        try:
            async with asyncio.timeout(times.every_s * 2), db.transaction() as tx:
                state = await hosts.beat(tx, host_id, epoch, facts)
        except (Unavailable, TimeoutError):
            log.warning("heartbeat_failed", silent_s=round(loop.time() - last))
            await guard.silent_for(loop.time() - last)
        else:
            if not state:
                raise HostTaken(host_id)
            if drained is not None:
                (drained.set if state == "draining" else drained.clear)()
            last = loop.time()
            await guard.heard()
        await asyncio.sleep(times.every_s)


class _Guard:
    """Pauses and kills by how long the database has been silent."""

    def __init__(self, sandboxes: Sandboxes, times: Beating) -> None:
        self._sandboxes = sandboxes
        self._times = times
        self._paused: set[str] = set()
        self._killed: set[str] = set()

    async def silent_for(self, seconds: float) -> None:
        if seconds >= self._times.kill_after_s:
            await self._each("kill", self._killed)
        elif seconds >= self._times.pause_after_s:
            await self._each("pause", self._paused)

    async def heard(self) -> None:
        for sandbox in self._sandboxes.held():
            if sandbox.id in self._paused and sandbox.id not in self._killed:
                try:
                    await sandbox.unpause()
                except SandboxError as error:
                    log.warning("unpause_failed", sandbox=sandbox.id, error=str(error))
                    continue
                self._paused.discard(sandbox.id)

    async def _each(self, action: str, done: set[str]) -> None:
        for sandbox in self._sandboxes.held():
            if sandbox.id in done:
                continue
            log.error("self_fencing", action=action, sandbox=sandbox.id)
            try:
                await (sandbox.kill() if action == "kill" else sandbox.pause())
            except SandboxError as error:
                log.warning("self_fencing_failed", sandbox=sandbox.id, error=str(error))
            else:
                done.add(sandbox.id)
