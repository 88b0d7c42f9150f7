"""Resident helpers of the host on two pipes: bytes both ways, neither side holding more than its window."""

from __future__ import annotations

import os
import select

from launcher_command import Command
from launcher_loop import Loop
from launcher_process import waiting
from launcher_stream import BYTES, WINDOW, Stream
from launcher_wire import DATA, FRAME, HEADER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

DRAIN_S = 0.3
GRACE_S = 2.0
"""From the end of its input to its death: a helper may have keys to let go."""
TAKEN = 1
"""Flag of the data that says how many bytes of input the host may send anew."""


class Pipe(Stream):
    name = "pipe"

    def __init__(self, loop: Loop, request: int, command: Command) -> None:
        super().__init__(loop, request)
        self.pending = bytearray()
        self.taken = 0
        self.gone = False
        self.left: int | None = None
        self._open(command)
        self.rearm()

    def _open(self, command: Command) -> None:
        fds: list[int] = []
        try:
            fds += os.pipe()
            fds += os.pipe()
            fds.append(os.open(os.devnull, os.O_WRONLY))
            self.pid = command.spawn((fds[0], fds[3], fds[4]))
        except (OSError, ValueError):
            for fd in fds:
                os.close(fd)
            raise
        self.stdin, self.stdout = fds[1], fds[2]
        for fd in (fds[0], fds[3], fds[4]):
            os.close(fd)
        for fd in (self.stdin, self.stdout):
            os.set_blocking(fd, False)

    def take(self, what: int, body: bytes, fields: Callable[[bytes], list[bytes]]) -> None:  # noqa: ARG002
        if what != BYTES or len(self.pending) + self.taken + len(body) > WINDOW:
            raise ValueError("more input than was asked for")
        self.pending += body
        self._feed()

    def _feed(self) -> None:
        try:
            while self.pending and self.stdin >= 0:
                count = os.write(self.stdin, bytes(self.pending[:FRAME]))
                del self.pending[:count]
                self.taken += count
        except BlockingIOError:
            pass
        except OSError:
            self._close_stdin()
        if self.stdin < 0:  # the helper does not want it: as with any pipe
            self.taken += len(self.pending)
            self.pending.clear()
        self.rearm()

    def piece(self) -> bytes | None:
        if self.taken >= WINDOW // 4 or (self.taken and not self.pending):
            body, self.taken = b"%d" % self.taken, 0
            return HEADER.pack(DATA, TAKEN, self.request, len(body)) + body
        return super().piece()

    def _ready(self) -> None:
        try:
            data = os.read(self.stdout, min(FRAME - len(self.out), FRAME if self.left is None else self.left))
        except BlockingIOError:
            return
        if not self.gone:
            self.out += data
        if self.left is not None:
            self.left -= len(data)
        if not data or self.left == 0:
            self._close_stdout()
        self.rearm()

    def rearm(self) -> None:
        if self.stdin >= 0:
            if self.pending:
                self.loop.watch(self.stdin, select.EPOLLOUT, self._feed)
            else:
                self.loop.forget(self.stdin)
        if self.stdout >= 0:
            if len(self.out) < FRAME:
                self.loop.watch(self.stdout, select.EPOLLIN, self._ready)
            else:
                self.loop.forget(self.stdout)

    def reading(self) -> bool:
        return self.stdout >= 0

    def ended(self) -> None:
        self._close_stdin()
        self._feed()
        self.loop.after(self, 0 if self.gone else DRAIN_S, self._expire)

    def _expire(self) -> None:
        """What it left in the background may hold the pipe: what is in it now is the last."""
        if self.stdout >= 0:
            self.left = 0 if self.gone else waiting(self.stdout)
            if self.left == 0:
                self._close_stdout()

    def hang_up(self) -> None:
        """Output is dropped from now on, read though: a helper that says goodbye must not wait for us."""
        self.gone = True
        self.out.clear()
        self._close_stdin()
        if self.ending is None:
            self.rearm()
            self.loop.after(self, GRACE_S, self.kill)
        else:
            self.loop.timers.pop(self, None)
            self._close_stdout()

    def _close_stdin(self) -> None:
        if self.stdin >= 0:
            self.loop.close(self.stdin)
            self.stdin = -1

    def _close_stdout(self) -> None:
        if self.stdout >= 0:
            self.loop.close(self.stdout)
            self.stdout = -1
