"""What Linux tells about processes, and the tie of a child's life to its parent's."""

import ctypes
import os
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_GET_PDEATHSIG = 2
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(sig: signal.Signals) -> Callable[[], None]:
    """Return a ``preexec_fn``: the kernel sends ``sig`` to the child when its parent is gone, however it went.

    It runs after Popen has changed the uid (a change of credentials would clear the setting). The tie is to the
    *thread* that spawns, so only a thread that lives as long as the process may use it.
    """
    parent = os.getpid()

    def preexec() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(sig), 0, 0, 0)
        if os.getppid() != parent:  # it died between fork and prctl: nobody would tell us any more
            os._exit(1)

    return preexec


@contextmanager
def keeping_death_signal() -> Generator[None]:
    """Restore, after a change of our uid, what :func:`die_with_parent` had set."""
    sig, parent = ctypes.c_int(0), os.getppid()
    _LIBC.prctl(_PR_GET_PDEATHSIG, ctypes.byref(sig), 0, 0, 0)
    yield
    if sig.value:
        _LIBC.prctl(_PR_SET_PDEATHSIG, sig.value, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


def start_ticks(pid: int) -> int | None:
    """Clock ticks between boot and the start of ``pid``; ``None`` when it has ended (a zombie has ended)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


def started_at(pid: int) -> float | None:
    """Unix seconds of the start of ``pid`` by today's clock; ``None`` when it has ended."""
    ticks = start_ticks(pid)
    if ticks is None:
        return None
    lines = Path("/proc/stat").read_text().splitlines()
    booted = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    return booted + ticks / os.sysconf("SC_CLK_TCK")


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def identity(pid: int) -> dict[str, int | str] | None:
    """What tells this process from a later one with the same number, also over a reboot and a step of the clock."""
    ticks = start_ticks(pid)
    return None if ticks is None else {"pid": pid, "start_ticks": ticks, "boot_id": boot_id()}


def find(uid: int, matches: Callable[[list[str]], bool]) -> Iterator[int]:
    """Yield the live processes of ``uid`` whose argument list ``matches``. Needs no right to trace them."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            cmdline = (entry / "cmdline").read_bytes() if entry.stat().st_uid == uid else b""
        except (FileNotFoundError, ProcessLookupError):
            continue
        if cmdline and matches(cmdline.decode(errors="replace").rstrip("\0").split("\0")):
            yield int(entry.name)


def kill(pids: Iterable[int], sig: signal.Signals = signal.SIGKILL) -> None:
    for pid in pids:
        try:
            os.kill(pid, sig)
        except ProcessLookupError:
            continue


def pause(seconds: float) -> None:
    """Block this process: there is no event loop yet, or it has ended."""
    time.sleep(seconds)  # noqa: TID251  # the one place where this package sleeps


def wait_until(condition: Callable[[], bool], timeout_s: float, poll_s: float = 0.02) -> bool:
    """Poll ``condition`` until it holds; false after ``timeout_s`` seconds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        pause(poll_s)
    return True
