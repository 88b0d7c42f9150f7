"""Named points at which a crash test has this process kill itself, once.

Inactive unless wiring gave a name at process start; then ``reach`` of that name leaves a marker file and sends this
process SIGKILL. The marker makes the restarted process live.
"""

import os
import signal
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


@dataclass(frozen=True, slots=True)
class CrashPoints:
    """``name`` is the one active point; null = none. Raises ValueError at a name that does not exist."""

    name: str | None = None
    marker_dir: Path | None = None

    def __post_init__(self) -> None:
        if self.name is not None and (self.name not in NAMES or self.marker_dir is None):
            raise ValueError(f"unknown crash point {self.name!r} or no directory for its marker")

    def reach(self, name: str) -> None:
        """Die here if this is the active point and nobody died of it before."""
        assert name in NAMES, name
        if name != self.name or self.marker_dir is None:
            return
        try:
            os.close(os.open(self.marker_dir / f"crashed-{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)
