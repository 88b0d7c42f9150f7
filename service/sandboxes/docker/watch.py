"""Notice a container's death at once, without asking the engine: a pidfd of its first process.

Where the process is not visible from here (another pid namespace), the engine is asked every POLL_S seconds instead.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable

from service.domain.run_states import ContainerState
from service.sandboxes.contract import ContainerReport, SandboxError
from service.sandboxes.docker import cgroup
from service.sandboxes.docker.descriptors import readable

POLL_S = 2.0
CONFIRM_S = 0.05
"""Pause between questions to an engine that has not yet noticed what the pidfd said."""


class DeathWatch:
    """Calls ``died`` once, when the engine confirms that the container is not running any more."""

    def __init__(self, inspect: Callable[[], Awaitable[ContainerReport]], died: Callable[[str], None]) -> None:
        self._inspect = inspect
        self._died = died
        self._task: asyncio.Task[None] | None = None

    def begin(self, pid: int, container: str) -> None:
        self._task = asyncio.create_task(self._run(pid, container), name=f"watch {container[:12]}")

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self, pid: int, container: str) -> None:
        seen = await _gone(pid, container)
        while True:
            try:
                report = await self._inspect()
            except SandboxError:  # the engine does not answer: that says nothing about the sandbox
                await asyncio.sleep(POLL_S)
                continue
            if report.state is not ContainerState.RUNNING:
                self._died(f"the container stopped ({report.state.value}, exit {report.exit_code})")
                return
            await asyncio.sleep(CONFIRM_S if seen else POLL_S)


async def _gone(pid: int, container: str) -> bool:
    """Wait for the process to end; return False at once if it cannot be watched from here."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # Checked with the pidfd open: from here on the number cannot have been given to another process.
        if not cgroup.belongs_to(pid, container):
            return False
        await readable(fd)
        return True
    finally:
        os.close(fd)
