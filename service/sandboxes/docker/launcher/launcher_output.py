"""The scaffold's command and its acknowledged output."""

from __future__ import annotations

import os
import time

from launcher_command import Command
from launcher_loop import Loop
from launcher_process import Owner, Process
from launcher_wire import FRAME, HEADER, OUTPUT, TICK_S, number, pack

RING = 4 << 20
PROGRAM_DRAIN_S = 2.0
MOST_FORGIVEN_S = 900.0
ACCOUNT = "account"
GATHER = "gather"
GATHER_S = 0.005
"""Between two frames while output flows: a program that prints line by line must not cost the host a frame each."""


def _nothing() -> None:
    """The turn of the loop that calls this sends what has gathered."""


class Program(Owner):
    """The scaffold's command with its ring of unacknowledged output and its exit, which is kept for good."""

    def __init__(self, loop: Loop, command: Command, deadline_s: float) -> None:
        self.loop = loop
        self.rings = (bytearray(), bytearray())
        self.base = [0, 0]
        self.sent = [0, 0]
        self.sent_at = 0.0
        self.waited_s = 0.0
        self.forgiven_s = 0.0
        self.paused_at: float | None = None
        self.deadline_hit = False
        self.exit: bytes | None = None
        self.process: Process | None = None
        try:
            self.process = Process(loop, command, self, PROGRAM_DRAIN_S)
            loop.after(self, deadline_s, self._deadline)
        except (OSError, ValueError) as error:
            self._not_started(command, error)

    def _not_started(self, command: Command, error: OSError | ValueError) -> None:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        text = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        self.take(1, b"workstead: cannot start %s: %s\n" % (command.argv[0][:4096], text.encode()))
        self.exit = self._report(127 if missing else 126, None, 0.0, 0)

    def _deadline(self) -> None:
        """The time for which the host took nothing comes on top, up to a bound: whoever waits for us is not late."""
        waited = min(self.waited_s, MOST_FORGIVEN_S)
        if waited - self.forgiven_s > TICK_S:
            self.loop.after(self, waited - self.forgiven_s, self._deadline)
            self.forgiven_s = waited
        elif self.process is not None:
            self.deadline_hit = self.process.kill()

    def room(self) -> int:
        free = RING - len(self.rings[0]) - len(self.rings[1])
        return 0 if self.paused_at is not None and free < FRAME else free

    def take(self, stream: int, data: bytes) -> None:
        self.rings[stream].extend(data)

    def full(self) -> None:
        if self.process is not None and self.paused_at is None:
            self.paused_at = time.monotonic()
            self.process.pause()
            self.loop.after(ACCOUNT, TICK_S, self._account)

    def _account(self) -> None:
        """Sum the time during which the child cannot write because the host takes nothing."""
        if self.process is None or self.paused_at is None:
            return
        now = time.monotonic()
        if self.process.wall_s is None and self.process.blocked():
            self.waited_s += now - self.paused_at
        self.paused_at = now
        self.loop.after(ACCOUNT, TICK_S, self._account)

    def ack(self, stream: int, offset: int) -> None:
        count = min(offset - self.base[stream], len(self.rings[stream]))
        if count <= 0:
            return
        del self.rings[stream][:count]
        self.base[stream] += count
        self.sent[stream] = max(self.sent[stream], self.base[stream])
        if self.paused_at is not None and self.room() > 0 and self.process is not None:
            self._account()
            self.loop.timers.pop(ACCOUNT, None)
            self.paused_at = None
            self.process.resume()

    def rewind(self) -> None:
        self.sent = list(self.base)

    def frame(self) -> bytes | None:
        """The next unsent piece, as a message; the exit once everything before it is acknowledged is for the caller."""
        if self._gathering():
            return None
        for stream in (0, 1):
            at = self.sent[stream] - self.base[stream]
            data = self.rings[stream][at : at + FRAME]
            if data:
                head = HEADER.pack(OUTPUT, stream, self.sent[stream], len(data))
                self.sent[stream] += len(data)
                self.sent_at = time.monotonic()
                return head + data
        return None

    def _gathering(self) -> bool:
        """True while a little output may wait for more; a timer then ends the wait."""
        unsent = sum(self.base[s] + len(self.rings[s]) - self.sent[s] for s in (0, 1))
        if unsent == 0 or unsent >= FRAME or self.process is None or self.process.wall_s is not None:
            return False
        wait = self.sent_at + GATHER_S - time.monotonic()
        if wait > 0:
            self.loop.after(GATHER, wait, _nothing)
        return wait > 0

    def finished(self) -> None:
        process = self.process
        if process is not None:
            self.loop.timers.pop(self, None)
            self.exit = self._report(process.code, process.signal, process.wall_s or 0.0, process.max_rss)

    def _report(self, code: int | None, signal: int | None, wall_s: float, max_rss: int) -> bytes:
        times = number(wall_s * 1e6), number(max_rss), number(self.waited_s * 1e6)
        flag = b"1" if self.deadline_hit else b""
        totals = [number(self.base[s] + len(self.rings[s])) for s in (0, 1)]
        return pack(number(code), number(signal), *times, flag, *totals)

    def delivered(self) -> bool:
        return self.exit is not None and not self.rings[0] and not self.rings[1]
