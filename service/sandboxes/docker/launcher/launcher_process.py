"""A child process: pipes, end, drain."""

# ruff: noqa: SIM105 - contextlib and pathlib cost start-up time

from __future__ import annotations

import fcntl
import os
import select
import sys
import time

from launcher_command import Command
from launcher_loop import Loop
from launcher_small import signal
from launcher_wire import FRAME, TICK_S

FIONREAD, F_GETPIPE_SZ = 0x541B, 1032  # `termios` is not in every minimal Python; fcntl has no such name before 3.10


def _has_resource() -> bool:
    # os.wait4 needs the module, finds out when the child is already reaped, and not every minimal Python has it.
    try:
        __import__("resource")
    except ImportError:
        return False
    return True


HAS_RESOURCE = _has_resource()
GONE_S = 1.0


def wait(pid: int) -> tuple[int, int, int, float]:
    """Return (pid or 0, status, most resident bytes, CPU seconds); both 0 where this Python cannot tell.

    The kernel carries the high-water mark over exec, so that our own size (15 MB) is the least it ever reports.
    """
    if not HAS_RESOURCE:
        return (*os.waitpid(pid, os.WNOHANG), 0, 0.0)
    pid, status, usage = os.wait4(pid, os.WNOHANG)
    return pid, status, usage.ru_maxrss << 10, usage.ru_utime + usage.ru_stime


def waiting(fd: int) -> int:
    """Bytes in a pipe."""
    return int.from_bytes(fcntl.ioctl(fd, FIONREAD, b"\0\0\0\0"), sys.byteorder)


def may_sweep() -> bool:
    """True if this PID namespace is the sandbox's: its init is our parent, or we are it."""
    return os.getppid() in (0, 1)


def sweep() -> bool:
    """SIGKILL every process of the sandbox but its init and us, those that fork included; False if there was none.

    Returns when init has reaped them, or a second later.
    """
    if not may_sweep():
        return False
    left, until = False, time.monotonic() + GONE_S
    while _kill_all():
        left = True
        if time.monotonic() > until:
            break
        time.sleep(0.001)  # noqa: TID251 - nothing tells us of the end of what is not our child
    return left


def _kill_all() -> bool:
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        return False
    return True


class Owner:
    """Who takes a process's output and end."""

    def room(self) -> int:
        return FRAME

    def take(self, stream: int, data: bytes) -> None:
        raise NotImplementedError

    def full(self) -> None:
        raise NotImplementedError

    def reaped(self) -> None:
        """The direct child ended; its pipes may still be open."""

    def finished(self) -> None:
        raise NotImplementedError


class Process:
    """A child in a session of its own, its three pipes and its end.

    Finished when the *direct* child ended and its pipes are at EOF, or ``drain_s`` later with what was readable then:
    a background child that keeps a pipe open does not delay the end.
    """

    def __init__(self, loop: Loop, command: Command, owner: Owner, drain_s: float) -> None:
        self.loop, self.owner, self.drain_s = loop, owner, drain_s
        self.pid = 0
        self.code: int | None = None
        self.signal: int | None = None
        self.max_rss = 0
        self.cpu_s = 0.0
        self.finished = False
        self.started = time.monotonic()
        self.wall_s: float | None = None
        self.quota: dict[int, int] = {}
        self.pending = memoryview(command.stdin)
        self._open(command)
        self.feed()
        self.resume()

    def _open(self, command: Command) -> None:
        fds: list[int] = []
        try:
            for _ in range(3):
                fds.extend(os.pipe())
            self.pid = command.spawn((fds[0], fds[3], fds[5]))
        except (OSError, ValueError):
            for fd in fds:
                os.close(fd)
            raise
        self.stdin, self.out = fds[1], {0: fds[2], 1: fds[4]}
        for fd in (fds[0], fds[3], fds[5]):
            os.close(fd)
        for fd in (fds[1], fds[2], fds[4]):
            os.set_blocking(fd, False)

    def feed(self) -> None:
        try:
            while self.pending:
                self.pending = self.pending[os.write(self.stdin, self.pending[:FRAME]) :]
        except BlockingIOError:
            self.loop.watch(self.stdin, select.EPOLLOUT, self.feed)
            return
        except OSError:
            pass  # the program does not want its input: as with any pipe
        self._close_stdin()

    def _close_stdin(self) -> None:
        if self.stdin >= 0:
            self.loop.close(self.stdin)
            self.stdin = -1

    def resume(self) -> None:
        for stream, fd in self.out.items():
            self.loop.watch(fd, select.EPOLLIN, (lambda s=stream: self.read(s)))

    def pause(self) -> None:
        for fd in self.out.values():
            self.loop.forget(fd)

    def read(self, stream: int) -> None:
        if stream not in self.out:
            return
        room = self.owner.room()
        if room <= 0:
            self.owner.full()
            return
        quota = self.quota.get(stream, FRAME)
        try:
            data = os.read(self.out[stream], min(FRAME, room, quota))
        except BlockingIOError:
            return
        if data:
            self.owner.take(stream, data)
        if stream in self.quota:
            self.quota[stream] -= len(data)
        if not data or self.quota.get(stream) == 0:
            self._close_stream(stream)

    def _close_stream(self, stream: int) -> None:
        self.loop.close(self.out.pop(stream))
        self._check_finished()

    def _check_finished(self) -> None:
        if self.wall_s is not None and not self.out and not self.finished:
            self.finished = True
            self.loop.timers.pop(self, None)
            self._close_stdin()
            self.owner.finished()

    def blocked(self) -> bool:
        """True if the child's next write would wait. Small writes fill a pipe's slots by half at worst."""
        return any(waiting(fd) * 2 >= fcntl.fcntl(fd, F_GETPIPE_SZ) for fd in self.out.values())

    def reap(self) -> None:
        pid, status, self.max_rss, self.cpu_s = wait(self.pid)
        if pid == 0:
            return
        self.wall_s = time.monotonic() - self.started
        if os.WIFSIGNALED(status):
            self.signal = os.WTERMSIG(status)
        else:
            self.code = os.WEXITSTATUS(status)
        self.owner.reaped()
        self.loop.after(self, self.drain_s, self._expire)
        for stream in [*self.out, *self.out]:  # twice: the rest, then its end
            self.read(stream)
        self._check_finished()

    def _expire(self) -> None:
        if self.owner.room() <= 0:  # the host is away: what is in the pipe is not lost for that
            self.loop.after(self, TICK_S, self._expire)
            return
        for stream, fd in list(self.out.items()):
            self.quota[stream] = waiting(fd)
            if self.quota[stream] == 0:
                self._close_stream(stream)

    def tell(self, number: int) -> bool:
        """Send a signal to the child alone: what it started is for it to tell. False if the child has ended."""
        if self.wall_s is not None:
            return False
        try:
            os.kill(self.pid, number)
        except OSError:
            return False
        return True

    def kill(self) -> bool:
        """SIGKILL the child's group, while its number cannot be anybody else's. False if the child has ended."""
        if self.wall_s is not None:
            return False
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass
        return True
