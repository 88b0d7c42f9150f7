"""Interactive programs on a terminal of their own, for people who look into a sandbox. They end with the connection."""

# ruff: noqa: SIM105 - contextlib costs start-up time

from __future__ import annotations

import fcntl
import os
import select
import struct

from launcher_command import Command
from launcher_loop import Loop
from launcher_process import wait
from launcher_small import signal
from launcher_wire import DATA, FRAME, HEADER, RESULT, Refused, number, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TERMINALS = 8
WINDOW = 256 << 10
MAX_TYPED = 1 << 20
DRAIN_S = 0.3
TIOCSWINSZ = 0x5414
BYTES, RESIZE, CREDIT, HANG_UP = range(4)


class Terminal:
    """``credit``: bytes that the host takes before it asks for more; what the program writes beyond waits in its tty."""

    def __init__(self, loop: Loop, request: int, command: Command, size: tuple[int, int]) -> None:
        self.loop, self.request, self.credit = loop, request, WINDOW
        self.out, self.typed = bytearray(), bytearray()
        self.ending: bytes | None = None
        self.told = False
        self.fd, slave = os.openpty()
        try:
            self.resize(*size)
            os.set_blocking(self.fd, False)
            self.pid = command.spawn_on(os.ttyname(slave))
        except (OSError, ValueError):
            os.close(self.fd)
            raise
        finally:
            os.close(slave)
        self._rearm()

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, TIOCSWINSZ, struct.pack("HHHH", rows & 0xFFFF, columns & 0xFFFF, 0, 0))

    def type(self, data: bytes) -> None:
        if self.fd >= 0 and len(self.typed) + len(data) <= MAX_TYPED:
            self.typed += data
            self._ready()

    def piece(self) -> bytes | None:
        """The next message, the last of which says how the program ended."""
        data = bytes(self.out[: min(FRAME, self.credit)])
        if data:
            del self.out[: len(data)]
            self.credit -= len(data)
            self._rearm()
            return HEADER.pack(DATA, 0, self.request, len(data)) + data
        if self.ending is None or self.out or self.fd >= 0:
            return None
        self.told = True
        return HEADER.pack(RESULT, 0, self.request, len(self.ending)) + self.ending

    def _ready(self) -> None:
        try:
            if self.typed:
                del self.typed[: os.write(self.fd, bytes(self.typed[:FRAME]))]
        except BlockingIOError:
            pass
        except OSError:
            self.typed.clear()
        try:
            room = FRAME - len(self.out)
            data = os.read(self.fd, room) if room > 0 else None
        except BlockingIOError:
            data = None
        except OSError:  # EIO: nobody has the terminal open any more
            data = b""
        if data == b"":
            self._hang_up()
            return
        self.out += data or b""
        self._rearm()

    def _rearm(self) -> None:
        if self.fd < 0:
            return
        events = (select.EPOLLIN if len(self.out) < FRAME else 0) | (select.EPOLLOUT if self.typed else 0)
        if events:
            self.loop.watch(self.fd, events, self._ready)
        else:
            self.loop.forget(self.fd)

    def reap(self) -> None:
        if self.ending is not None:
            return
        pid, status, _, _ = wait(self.pid)
        if pid:
            ended = (None, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), None)
            self.ending = pack(b"ok", number(ended[0]), number(ended[1]))
            self.loop.after(self, DRAIN_S, self._hang_up)  # what it left in the background may hold the terminal

    def _hang_up(self) -> None:
        if self.fd >= 0:
            self.loop.close(self.fd)
            self.fd = -1

    def kill(self) -> None:
        """End the program and what belongs to its session."""
        self._hang_up()
        if self.ending is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except OSError:
                pass


class Terminals:
    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.open: dict[int, Terminal] = {}
        self.killed: list[Terminal] = []

    def begin(self, request: int, fields: list[bytes], inherited: dict[bytes, bytes]) -> None:
        if len(self.open) >= MAX_TERMINALS:
            raise Refused("busy", f"{MAX_TERMINALS} terminals are open")
        size = int(fields[0]), int(fields[1])
        try:
            self.open[request] = Terminal(self.loop, request, Command(fields[2:], inherited), size)
        except (OSError, ValueError) as error:
            raise Refused("not_started", str(error)) from error

    def take(self, request: int, what: int, body: bytes, fields: Callable[[bytes], list[bytes]]) -> None:
        terminal = self.open.get(request)
        if terminal is None:
            return
        if what == BYTES:
            terminal.type(body)
        elif what == RESIZE and terminal.fd >= 0:
            rows, columns = fields(body)
            terminal.resize(int(rows), int(columns))
        elif what == CREDIT:
            terminal.credit = min(WINDOW, terminal.credit + int(body))
        elif what == HANG_UP:
            terminal.kill()

    def piece(self) -> bytes | None:
        for request, terminal in self.open.items():
            message = terminal.piece()
            if message is not None:
                if terminal.told:
                    del self.open[request]
                return message
        return None

    def disconnected(self) -> None:
        """Nobody looks any more. The dead are reaped as they come."""
        for terminal in self.open.values():
            terminal.kill()
            self.killed.append(terminal)
        self.open.clear()

    def reap(self) -> None:
        for terminal in [*self.open.values(), *self.killed]:
            terminal.reap()
        self.killed = [t for t in self.killed if t.ending is None]
