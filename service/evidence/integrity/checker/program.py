"""Reads a list of files from stdin, opens each in a process of its own, writes one JSON line per file.

stdin: ``[[number, extension], …]``; file *n* lies at ``<folder>/<n>/file``. No name of the deliverable comes in here: a
line is ``{"n": number, "sniffed", "opens", "problems", "facts"}``. A reader that does not end in time is killed.
"""

import ctypes
import json
import os
import select
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from service.evidence.integrity.checker.child import Result, fork_reader, sniffed
from service.evidence.integrity.checker.readers import reader_of
from service.evidence.integrity.checker.sniff import judged

WALL_S = 30.0
AT_ONCE = 2
_MOST = 65536
_PR_SET_DUMPABLE = 4


@dataclass(slots=True)
class _Reading:
    number: int
    pid: int
    until: float
    said: bytearray = field(default_factory=bytearray)


def main(folder: str) -> int:
    # A reader that a file has taken over has our uid: it can end us, but not speak for us.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    wanted: deque[tuple[int, str]] = deque((int(n), str(ext)) for n, ext in json.load(sys.stdin))
    base = Path(folder)
    for number, ext in wanted:
        reader_of(judged(ext, sniffed(base / str(number) / "file"))[0])
    running: dict[int, _Reading] = {}
    while wanted or running:
        while wanted and len(running) < AT_ONCE:
            number, ext = wanted.popleft()
            pid, pipe = fork_reader(base / str(number) / "file", ext)
            running[pipe] = _Reading(number, pid, time.monotonic() + WALL_S)
        _wait(running)
    return 0


def _wait(running: dict[int, _Reading]) -> None:
    left = min(one.until for one in running.values()) - time.monotonic()
    ready, _, _ = select.select(list(running), [], [], max(0.0, left))
    for pipe in list(running):
        one = running[pipe]
        if pipe in ready:
            piece = os.read(pipe, _MOST)
            one.said += piece
            if piece and len(one.said) <= _MOST:
                continue
        elif time.monotonic() < one.until:
            continue
        _end(pipe, running.pop(pipe))


def _end(pipe: int, one: _Reading) -> None:
    os.close(pipe)
    late = time.monotonic() >= one.until
    try:
        os.killpg(one.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended, and so has everything that it started
    except PermissionError:
        pass  # it ended before it led a group
    _, status = os.waitpid(one.pid, 0)
    # The number comes last: a reader that was taken over may have put one in as well.
    print(json.dumps({**_understood(one, status, late=late), "n": one.number}), flush=True)  # noqa: T201


def _understood(one: _Reading, status: int, *, late: bool) -> Result:
    try:
        found = json.loads(one.said)
        if isinstance(found, dict):
            return found  # pyright: ignore[reportUnknownVariableType] - the host checks every field
    except ValueError:
        pass  # it died before it spoke
    by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if late or by in (signal.SIGXCPU, signal.SIGKILL):
        problem = ["timeout", "its reader did not end in time"]
    else:
        problem = ["cannot_open", f"its reader crashed (signal {by})"]
    return {"sniffed": None, "opens": False, "problems": [problem], "facts": {}}
