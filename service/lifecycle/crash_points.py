"""Named points at which a crash test stops this process: for good, or until the test has killed another one.

Inactive unless wiring gave a name at process start. ``<name>`` has the process kill itself there, ``<name>:wait`` has it
wait there (blocking, at most 30 s) until the test makes the file ``go-<name>``. Either leaves the marker file
``reached-<name>`` first, which disarms the point until the test removes it.
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
    """``point`` is the one active point; null = none. Raises ValueError at a name that does not exist."""

    point: str | None = None
    marker_dir: Path | None = None

    def __post_init__(self) -> None:
        if self.point is not None and (self.point.removesuffix(":wait") not in NAMES or self.marker_dir is None):
            raise ValueError(f"unknown crash point {self.point!r} or no directory for its marker")

    def reach(self, name: str) -> None:
        """Die or wait here if this is the active point and its marker is not there yet."""
        assert name in NAMES, name
        if self.point is None or self.marker_dir is None or self.point.removesuffix(":wait") != name:
            return
        try:
            os.close(os.open(self.marker_dir / f"reached-{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return
        if not self.point.endswith(":wait"):
            os.kill(os.getpid(), signal.SIGKILL)
        deadline = time.monotonic() + _LONGEST_WAIT_S
        while time.monotonic() < deadline and not (self.marker_dir / f"go-{name}").exists():
            time.sleep(0.005)  # noqa: TID251  # a crash test wants this process to stand still
