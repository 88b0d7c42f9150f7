"""What a host's machine has: memory, processors, and the room on the disks that sandboxes write to."""

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import structlog

from service.domain.limits import GIB
from service.store.rows import Json

READ_S = 2.0
"""How long a heartbeat waits for a disk to say how full it is."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Machine:
    """What the engine says of itself, once."""

    memory_bytes: int
    """0: it did not say."""
    cpus: int
    disks: dict[str, Path]
    """Name → a directory on it. One that this process cannot see is left out of the facts."""
    version: str
    """Of this service."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """What of a machine runs may be promised."""

    memory_fraction: float = 0.9
    disk_fraction: float = 0.15
    disk_bytes: int = 10 * GIB
    """The watermark of a disk is the smaller of the two."""
    disk_overcommit: float = 2.0


class MachineGauge:
    """Reads the disks in a thread of its own, so that one that hangs holds up nothing else."""

    def __init__(self, machine: Machine, reserve: Reserve) -> None:
        self._machine = machine
        self._reserve = reserve
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gauge")
        self._reading: asyncio.Future[Json] | None = None

    async def read(self) -> Json:
        """Return the facts of now; those of the disks are left out when they take longer than 2 s."""
        return self._lasting() | await self._disks()

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _lasting(self) -> Json:
        machine, reserve = self._machine, self._reserve
        facts: Json = {"version": machine.version, "cpus": machine.cpus, "disk_overcommit": reserve.disk_overcommit}
        if machine.memory_bytes:
            usable = int(machine.memory_bytes * reserve.memory_fraction)
            facts |= {"memory_total_bytes": machine.memory_bytes, "memory_usable_bytes": usable}
        return facts

    async def _disks(self) -> Json:
        if self._reading is None:
            loop = asyncio.get_running_loop()
            self._reading = loop.run_in_executor(self._thread, measure_disks, self._machine.disks, self._reserve)
        try:
            async with asyncio.timeout(READ_S):
                found = await asyncio.shield(self._reading)
        except TimeoutError:  # asked again with the next heartbeat, of the same call
            log.warning("disk_does_not_answer")
            return {}
        except OSError as error:
            log.warning("disk_unreadable", error=str(error))
            found: Json = {}
        self._reading = None
        return found


def measure_disks(disks: dict[str, Path], reserve: Reserve) -> Json:
    """Return free, total and watermark of each disk, and those of the one that is nearest to its watermark.

    Blocks. Raises OSError.
    """
    found: dict[str, dict[str, int]] = {}
    for name, path in disks.items():
        if path.is_dir():
            usage = shutil.disk_usage(path)
            watermark = min(int(usage.total * reserve.disk_fraction), reserve.disk_bytes)
            found[name] = {"free_bytes": usage.free, "total_bytes": usage.total, "watermark_bytes": watermark}
    if not found:
        return {}
    tightest = min(found.values(), key=lambda disk: disk["free_bytes"] - disk["watermark_bytes"])
    return {"disks": found} | {f"disk_{name}": value for name, value in tightest.items()}
