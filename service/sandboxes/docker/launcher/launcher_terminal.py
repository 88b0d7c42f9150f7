"""Interactive programs on a terminal of their own, for people who look into a sandbox."""

from __future__ import annotations

import fcntl
import os
import select
import struct

from launcher_command import Command
from launcher_loop import Loop
from launcher_stream import BYTES, RESIZE, Stream
from launcher_wire import FRAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TYPED = 1 << 20
DRAIN_S = 0.3
TIOCSWINSZ = 0x5414


class Terminal(Stream):
    name = "terminal"

    def __init__(self, loop: Loop, request: int, command: Command, size: tuple[int, int]) -> None:
        super().__init__(loop, request)
        self.typed = bytearray()
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
        self.rearm()

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, TIOCSWINSZ, struct.pack("HHHH", rows & 0xFFFF, columns & 0xFFFF, 0, 0))

    def take(self, what: int, body: bytes, fields: Callable[[bytes], list[bytes]]) -> None:
        if what == BYTES:
            self._type(body)
        elif what == RESIZE and self.fd >= 0:
            rows, columns = fields(body)
            self.resize(int(rows), int(columns))

    def _type(self, data: bytes) -> None:
        if self.fd >= 0 and len(self.typed) + len(data) <= MAX_TYPED:
            self.typed += data
            self._ready()

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
            self._close()
            return
        self.out += data or b""
        self.rearm()

    def rearm(self) -> None:
        if self.fd < 0:
            return
        events = (select.EPOLLIN if len(self.out) < FRAME else 0) | (select.EPOLLOUT if self.typed else 0)
        if events:
            self.loop.watch(self.fd, events, self._ready)
        else:
            self.loop.forget(self.fd)

    def reading(self) -> bool:
        return self.fd >= 0

    def ended(self) -> None:
        self.loop.after(self, DRAIN_S, self._close)  # what it left in the background may hold the terminal

    def hang_up(self) -> None:
        self._close()
        self.kill()

    def _close(self) -> None:
        if self.fd >= 0:
            self.loop.close(self.fd)
            self.fd = -1
