"""Keeps children running until told to stop. Does no work of its own: whatever fails here fails everything."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import structlog

from service.domain.errors import WorksteadError
from service.supervisor.children import Backoff, Member, kill_group
from service.supervisor.logs import cut
from service.supervisor.status import ChildStatus, StatusFile

DRAIN_S = 10.0
_KILL_S = 5.0
_LOG_CHECK_S = 2.0
_log = structlog.get_logger()


class Supervisor:
    """One event loop in the main thread: the life of each child is tied to the thread that starts it."""

    def __init__(self, status: StatusFile, *, drain_s: float = DRAIN_S) -> None:
        self._status = status
        self._drain_s = drain_s
        self._stopping = asyncio.Event()
        self._hurried = asyncio.Event()
        self._members: list[Member] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._live: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def handle_signals(self) -> None:
        """SIGTERM, SIGINT and SIGHUP (unless it is ignored) drain; a second one ends the draining."""
        loop = asyncio.get_running_loop()
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(sig) is not signal.SIG_IGN:
                loop.add_signal_handler(sig, self.stop)

    def stop(self) -> None:
        (self._hurried if self.stopping else self._stopping).set()

    def keep(self, member: Member) -> None:
        """Start ``member`` now and again whenever it ends, until :meth:`stop`."""
        self._members.append(member)
        self._status.children[member.name] = ChildStatus(pid=None, restarts=0, last_exit=None)
        process = self._spawn(member)
        self._tasks[member.name] = asyncio.create_task(self._keep(member, process), name=f"keep {member.name}")

    async def until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Poll until ``condition`` holds; false after ``timeout_s`` seconds or when told to stop."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not self.stopping and asyncio.get_running_loop().time() < deadline:
            if condition():
                return True
            await asyncio.sleep(0.03)
        return False

    async def run(self) -> None:
        """Return after :meth:`stop`. An error in the keeping itself (a bug) is raised."""
        trim = asyncio.create_task(self._trim_logs(), name="trim logs")
        stop = asyncio.create_task(self._stopping.wait(), name="stop")
        waits: set[asyncio.Task[Any]] = {trim, stop, *self._tasks.values()}
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            trim.cancel()
            stop.cancel()

    async def drain(self) -> None:
        """SIGTERM to every child; after ``drain_s`` seconds, or a second signal, SIGKILL to what is left."""
        self._stopping.set()
        self.announce("stopping")
        for process in self._live.values():
            process.terminate()
        await self._settle(self._drain_s)
        for name, process in self._live.items():
            _log.warning("child_killed", child=name, pid=process.pid, drain_s=self._drain_s)
            kill_group(process)
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=_KILL_S)

    def release(self, name: str) -> None:
        """Stop keeping a member and leave its process alone."""
        if task := self._tasks.pop(name, None):
            task.cancel()
        self._live.pop(name, None)

    def announce(self, state: str | None = None) -> None:
        self._status.state = state or self._status.state
        try:
            self._status.write()
        except OSError as error:
            _log.warning("status_not_written", error=str(error))

    async def _settle(self, timeout_s: float) -> None:
        hurried = asyncio.create_task(self._hurried.wait())
        everything = asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.wait({hurried, everything}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()

    async def _keep(self, member: Member, process: subprocess.Popen[bytes] | None) -> None:
        backoff = Backoff()
        while True:
            if process is not None:
                await self._ended(member, process)
            if await self._told_to_stop(backoff.next_delay_s()):
                return
            self._status.children[member.name]["restarts"] += 1
            backoff.started()
            process = self._spawn(member)

    def _spawn(self, member: Member) -> subprocess.Popen[bytes] | None:
        try:
            process = member.spawn()
        except (OSError, subprocess.SubprocessError, WorksteadError) as error:
            _log.error("child_not_started", child=member.name, error=str(error))
            return None
        self._live[member.name] = process
        self._status.children[member.name]["pid"] = process.pid
        self.announce()
        _log.info("child_started", child=member.name, pid=process.pid)
        return process

    async def _ended(self, member: Member, process: subprocess.Popen[bytes]) -> None:
        await _wait_for_end(process.pid)
        kill_group(process)
        code = process.wait()
        self._live.pop(member.name, None)
        self._status.children[member.name].update(pid=None, last_exit=code)
        self.announce()
        if not self.stopping:
            _log.error("child_ended", child=member.name, pid=process.pid, exit=code)

    async def _told_to_stop(self, delay_s: float) -> bool:
        try:
            async with asyncio.timeout(delay_s):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    async def _trim_logs(self) -> None:
        while True:
            await asyncio.sleep(_LOG_CHECK_S)
            for member in self._members:
                try:
                    if member.log is not None:
                        cut(member.log)
                except OSError as error:
                    _log.warning("log_not_cut", child=member.name, error=str(error))


async def _wait_for_end(pid: int) -> None:
    """Return when ``pid``, a child that nobody has reaped, has ended. Does not reap it."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.pidfd_open(pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
