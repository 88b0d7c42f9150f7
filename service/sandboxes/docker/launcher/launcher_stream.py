"""Programs whose bytes go over the connection as they come: terminals and pipes. They end with the connection."""

# ruff: noqa: SIM105 - contextlib costs start-up time

from __future__ import annotations

import os

from launcher_loop import Loop
from launcher_process import wait
from launcher_small import signal
from launcher_wire import DATA, FRAME, HEADER, RESULT, Refused, number, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MOST, MOST_ENDING = 8, 16
WINDOW = 256 << 10
BYTES, RESIZE, CREDIT, HANG_UP = range(4)


class Stream:
    """``credit``: bytes that the host takes before it asks for more; what the program writes beyond waits in its pipe."""

    name = ""

    def __init__(self, loop: Loop, request: int) -> None:
        self.loop, self.request, self.credit = loop, request, WINDOW
        self.out: bytearray = bytearray()
        self.ending: bytes | None = None
        self.told = False
        self.pid = 0

    def take(self, what: int, body: bytes, fields: Callable[[bytes], list[bytes]]) -> None:
        raise NotImplementedError

    def rearm(self) -> None:
        """Watch the descriptors for what there is room for."""
        raise NotImplementedError

    def reading(self) -> bool:
        """False once the program's output has ended."""
        raise NotImplementedError

    def ended(self) -> None:
        """The program was reaped."""
        raise NotImplementedError

    def hang_up(self) -> None:
        """Nobody looks any more: end the program."""
        raise NotImplementedError

    def piece(self) -> bytes | None:
        """The next message, the last of which says how the program ended."""
        data = bytes(self.out[: min(FRAME, self.credit)])
        if data:
            del self.out[: len(data)]
            self.credit -= len(data)
            self.rearm()
            return HEADER.pack(DATA, 0, self.request, len(data)) + data
        if self.ending is None or self.out or self.reading():
            return None
        self.told = True
        return HEADER.pack(RESULT, 0, self.request, len(self.ending)) + self.ending

    def reap(self) -> None:
        if self.ending is not None:
            return
        pid, status, _, _ = wait(self.pid)
        if pid:
            ended = (None, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), None)
            self.ending = pack(b"ok", number(ended[0]), number(ended[1]))
            self.ended()

    def kill(self) -> None:
        """End the program and what belongs to its session."""
        if self.ending is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except OSError:
                pass


class Streams:
    def __init__(self) -> None:
        self.open: dict[int, Stream] = {}
        self.killed: list[Stream] = []

    def begin(self, request: int, kind: type[Stream], make: Callable[[], Stream]) -> None:
        if sum(isinstance(s, kind) for s in self.open.values()) >= MOST or len(self.killed) >= MOST_ENDING:
            raise Refused("busy", f"{MOST} {kind.name}s are open")
        try:
            self.open[request] = make()
        except (OSError, ValueError) as error:
            raise Refused("not_started", str(error)) from error

    def take(self, request: int, what: int, body: bytes, fields: Callable[[bytes], list[bytes]]) -> None:
        stream = self.open.get(request)
        if stream is None:
            return
        if what == CREDIT:
            stream.credit = min(WINDOW, stream.credit + int(body))
        elif what == HANG_UP:
            self._end(request)
        else:
            stream.take(what, body, fields)

    def piece(self) -> bytes | None:
        for request, stream in self.open.items():
            message = stream.piece()
            if message is not None:
                if stream.told:
                    del self.open[request]
                return message
        return None

    def disconnected(self) -> None:
        """Nobody looks any more. The dead are reaped as they come."""
        for request in list(self.open):
            self._end(request)

    def _end(self, request: int) -> None:
        stream = self.open.pop(request)
        stream.hang_up()
        if stream.ending is None:
            self.killed.append(stream)

    def reap(self) -> None:
        for stream in [*self.open.values(), *self.killed]:
            stream.reap()
        self.killed = [s for s in self.killed if s.ending is None]
