"""Tool calls: by id, concurrent, kept until the host no longer wants them."""

from __future__ import annotations

import os

from launcher_command import Command
from launcher_loop import Loop
from launcher_process import Owner, Process, may_sweep, sweep
from launcher_small import deque
from launcher_wire import DATA, FRAME, HEADER, Refused, number, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

RESULT_BYTES = 4 << 20
MAX_RUNNING, MAX_CALLS, MAX_RESULTS, MAX_RESULT_BYTES, MAX_FORGOTTEN = 32, 256, 64, 16 << 20, 4096
CALL_DRAIN_S = 0.5
SCRATCH = (b"/tmp", b"/var/tmp", b"/dev/shm")
REMAINS_BYTES = 1024


def remains(folders: list[bytes]) -> bytes:
    """What lies in the folders where programs can write, by name, each ended by a NUL; cut at 1 KiB."""
    return b"".join([names(folder) for folder in folders])[:REMAINS_BYTES]


def names(folder: bytes) -> bytes:
    found = b""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found += entry.path + b"\0"
                if len(found) > REMAINS_BYTES:
                    break
    except OSError as error:
        return folder + b" " + os.strerror(error.errno or 0).encode() + b"\0"
    return found


class Call(Owner):
    """A tool call: queued, running, or a result kept until the host no longer wants it."""

    def __init__(self, loop: Loop, calls: Calls, fields: list[bytes], command: Command, alone: bool) -> None:
        self.loop, self.calls, self.command = loop, calls, command
        self.id, self.timeout_s, self.limit = fields[0], int(fields[1]) / 1000, int(fields[2])
        self.alone, self.left, self.remains = alone, False, b""
        self.kept = (bytearray(), bytearray())
        self.truncated = self.timed_out = False
        self.process: Process | None = None
        self.result: bytes | None = None
        self.asked: list[int] = []
        self.followers: dict[int, list[int]] = {}

    def begin(self) -> None:
        try:
            self.process = Process(self.loop, self.command, self, CALL_DRAIN_S)
            self.loop.after(self, self.timeout_s, self._timeout)
        except (OSError, ValueError) as error:
            kind = "no_such_program" if isinstance(error, (FileNotFoundError, NotADirectoryError)) else "not_started"
            self.result = pack(b"error", kind.encode(), str(error).encode("utf-8", "replace"))

    def _timeout(self) -> None:
        if self.process is not None:
            self.timed_out = self.process.kill()

    def take(self, stream: int, data: bytes) -> None:
        free = min(self.limit - len(self.kept[stream]), RESULT_BYTES - len(self.kept[0]) - len(self.kept[1]))
        self.kept[stream].extend(data[: max(0, free)])
        self.truncated = self.truncated or free < len(data)
        if self.truncated and self.alone and self.process is not None:
            self.process.kill()

    def reaped(self) -> None:
        if self.alone:
            self.left = sweep()
            self.remains = remains([self.calls.workspace, *SCRATCH])

    def finished(self) -> None:
        if self.process is None:
            return
        self.loop.timers.pop(self, None)
        process = self.process
        flags = [b"1" if flag else b"" for flag in (self.truncated, self.timed_out)]
        ends = number(process.code), number(process.signal)
        used = number((process.wall_s or 0) * 1e6), number(process.cpu_s * 1e6), number(process.max_rss)
        left = b"1" if self.left else b""
        self.result = pack(b"ok", *ends, *flags, bytes(self.kept[0]), bytes(self.kept[1]), *used, left, self.remains)
        self.kept = (bytearray(), bytearray())
        self.calls.ended(self)


class Calls:
    """Every call that is known, oldest first. ``answer(request, result)`` speaks to the connection of the moment.

    A result dropped (more than 64, or 16 MiB) or given up by the host leaves its id behind, so that it is not run twice.
    """

    def __init__(self, loop: Loop, workspace: bytes, answer: Callable[[int, bytes], None]) -> None:
        self.loop, self.workspace, self.answer = loop, workspace, answer
        self.known: dict[bytes, Call] = {}
        self.queue: deque[Call] = deque()
        self.running: set[Call] = set()
        self.forgotten: dict[bytes, None] = {}

    def ask(self, request: int, fields: list[bytes], inherited: dict[bytes, bytes], alone: bool, follow: bool) -> None:
        id = fields[0]
        call = self.known.get(id)
        if call is None:
            if alone and (self.running or self.queue or not may_sweep()):
                raise Refused("not_alone", "other calls run, or this is no sandbox of its own")
            if id in self.forgotten:
                raise Refused("result_dropped", "the call was made before and its result is no longer kept")
            if len(self.known) >= MAX_CALLS:
                raise Refused("busy", f"{MAX_CALLS} calls are waiting or running")
            call = Call(self.loop, self, fields, Command(fields[3:], inherited), alone)
            self.known[id] = call
            self.queue.append(call)
        call.asked.append(request)
        if follow:
            call.followers[request] = [0, 0]
        self.begin()
        self.reply(call)

    def begin(self) -> None:
        while self.queue and len(self.running) < MAX_RUNNING:
            call = self.queue.popleft()
            self.running.add(call)
            call.begin()
            if call.result is not None:
                self.ended(call)

    def reply(self, call: Call) -> None:
        if call.result is not None:
            for request in call.asked:
                self.answer(request, call.result)
            call.asked.clear()
            call.followers.clear()

    def piece(self) -> bytes | None:
        """The next message for those who follow a running call's output; what is left at its end is in the result."""
        for call in self.running:
            for request, sent in call.followers.items():
                for stream in (0, 1):
                    data = bytes(memoryview(call.kept[stream])[sent[stream] : sent[stream] + FRAME])
                    if data:
                        sent[stream] += len(data)
                        return HEADER.pack(DATA, stream, request, len(data)) + data
        return None

    def ended(self, call: Call) -> None:
        self.running.discard(call)
        self.reply(call)
        self._evict()
        self.loop.after(self, 0, self.begin)

    def _evict(self) -> None:
        kept = [(call, len(call.result)) for call in self.known.values() if call.result is not None]
        total = sum(size for _, size in kept)
        while len(kept) > MAX_RESULTS or total > MAX_RESULT_BYTES:
            call, size = kept.pop(0)
            total -= size
            self.forget(call.id, True)

    def forget(self, id: bytes, for_good: bool) -> None:
        call = self.known.get(id)
        if call is not None and call.result is not None:
            del self.known[id]
            if for_good:
                self.forgotten[id] = None
                if len(self.forgotten) > MAX_FORGOTTEN:
                    del self.forgotten[next(iter(self.forgotten))]

    def disconnected(self) -> None:
        for call in self.known.values():
            call.asked.clear()
            call.followers.clear()

    def reap(self) -> None:
        for call in list(self.running):
            if call.process is not None and call.process.wall_s is None:
                call.process.reap()
