"""Named points at which a crash test stops this process: for good, or until the test has killed another one.

Inactive unless wiring gave a directory at process start. The test writes ``<name>`` (the process kills itself there) or
``<name>:wait`` (it stands still there, blocking, for at most 30 s, until the test makes ``go-<name>``) into the file
``crash-point``. Either leaves ``reached-<name>`` first, which disarms the point until the test removes it.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

NAMES = (
    "submit.committed",
    "claim.committed",
    "provision.made",
    "provision.bound",
    "provision.files_written",
    "provision.started",
    "drive.streaming",
    "drive.decided",
    "collect.killed",
    "collect.sealed",
    "release.destroyed",
    "grade.started",
    "grade.decided",
)
_LONGEST_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class CrashPoints:
    """``directory`` is where the test and this process meet; null = no point is ever active."""

    directory: Path | None = None

    def reach(self, name: str) -> None:
        """Die or wait here if the test wants it."""
        assert name in NAMES, name
        if self.directory is not None:
            _meet(self.directory, name)


def _meet(directory: Path, name: str) -> None:
    try:
        wanted, _, mode = (directory / "crash-point").read_text().partition(":")
        if wanted != name:
            return
        os.close(os.open(directory / f"reached-{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except (FileNotFoundError, FileExistsError):
        return
    if mode != "wait":
        os.kill(os.getpid(), signal.SIGKILL)
    deadline = time.monotonic() + _LONGEST_WAIT_S
    while time.monotonic() < deadline and not (directory / f"go-{name}").exists():
        time.sleep(0.005)  # noqa: TID251  # a crash test wants this process to stand still
