"""One file in one process of its own, two at once: whatever its reader does, the others' results stand.

A process answers once, on a pipe that only its parent reads, and is killed with all that it started when it does not end.
"""

import ctypes
import os
import resource
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

AT_ONCE = 2
_PIECE = 1 << 20
_PR_SET_DUMPABLE = 4


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one process."""

    wall_s: float
    cpu_s: int
    memory: int
    """Bytes of address space."""
    file: int
    """Bytes of the largest file that it may write."""
    answer: int
    """Bytes that it may answer."""


@dataclass(frozen=True, slots=True)
class End:
    """How a process ended, and what it said."""

    number: int
    said: bytes
    late: bool
    signal: int
    """That ended it; 0: none."""


@dataclass(slots=True)
class _Running:
    number: int
    pid: int
    until: float
    said: bytearray = field(default_factory=bytearray)


def guard() -> None:
    """Be out of the readers' reach: one that a file has taken over has our uid, can end us, but not speak for us."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def run_each(numbers: Iterable[int], work: Callable[[int], bytes], done: Callable[[End], None], bounds: Bounds) -> None:
    """Call ``work`` of each number in a process of its own, and ``done`` here, in the order in which they end."""
    wanted = deque(numbers)
    running: dict[int, _Running] = {}
    while wanted or running:
        while wanted and len(running) < AT_ONCE:
            number = wanted.popleft()
            pid, pipe = _fork(number, work, bounds)
            running[pipe] = _Running(number, pid, time.monotonic() + bounds.wall_s)
        for pipe in _ended(running, bounds.answer):
            done(_end(pipe, running.pop(pipe)))


def _fork(number: int, work: Callable[[int], bytes], bounds: Bounds) -> tuple[int, int]:
    receive, send = os.pipe()
    pid = os.fork()
    if pid:
        os.close(send)
        return pid, receive
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        os.closerange(3, send)
        os.closerange(send + 1, 256)
        _limit(bounds)
        _write_all(send, work(number)[: bounds.answer])
        code = 0
    finally:
        os._exit(code)


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _limit(bounds: Bounds) -> None:
    for name, value in (
        (resource.RLIMIT_AS, bounds.memory),
        (resource.RLIMIT_CPU, bounds.cpu_s),
        (resource.RLIMIT_FSIZE, bounds.file),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(name, (value, value))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _ended(running: dict[int, _Running], most: int) -> list[int]:
    """Wait for something; return the pipes that said all, said too much, or are late."""
    left = min(one.until for one in running.values()) - time.monotonic()
    ready, _, _ = select.select(list(running), [], [], max(0.0, left))
    ended: list[int] = []
    for pipe, one in running.items():
        if pipe in ready:
            piece = os.read(pipe, _PIECE)
            one.said += piece
            if piece and len(one.said) <= most and time.monotonic() < one.until:
                continue
        elif time.monotonic() < one.until:
            continue
        ended.append(pipe)
    return ended


def _end(pipe: int, one: _Running) -> End:
    os.close(pipe)
    late = time.monotonic() >= one.until
    try:
        os.killpg(one.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended, and so has everything that it started
    except PermissionError:
        pass  # it ended before it led a group
    _, status = os.waitpid(one.pid, 0)
    return End(one.number, bytes(one.said), late, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)


def too_dear(end: End) -> bool:
    """Whether a process that said nothing took more time than it has."""
    return end.late or end.signal in (signal.SIGXCPU, signal.SIGKILL)
