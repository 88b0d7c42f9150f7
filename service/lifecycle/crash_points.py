"""Named points at which a crash test stops or kills this process, once.

Inactive unless wiring gave a directory at process start. Then the file ``crash-point`` in it names one point:
``<name>`` has the process that comes there send itself SIGKILL; ``<name>:wait`` has it stand still until the file
``go-<name>`` exists, so that the test can kill whomever it likes. Either way ``reached-<name>`` is made first, and while
it exists nobody is stopped there again.
"""

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

NAMES = (
    "submit.committed",
    "claim.committed",
    "provision.made",
    "provision.files_written",
    "provision.bound",
    "provision.started",
    "drive.streaming",
    "drive.decided",
    "collect.killed",
    "collect.sealed",
    "release.destroyed",
    "grade.started",
    "grade.decided",
)
"""On the path of a run."""
OF_OPERATIONS = (
    "import.batch_made", "client_facts.asked", "film.made", "controls.made", "preflight.tried", "operation.done",
)  # fmt: skip
OF_LOOPS = ("loop.acted", "loop.recorded", "client_message.answered", "desktop.performed")
ORDER_FILE = "crash-point"
MAX_STILL_S = 30.0


@dataclass(frozen=True, slots=True)
class CrashPoints:
    folder: Path | None = None
    """Null = inactive."""

    def reach(self, name: str) -> None:
        """Stop or die here if this point is the one that is armed. Blocks the whole process, on purpose."""
        if self.folder is None:
            return
        assert name in (*NAMES, *OF_OPERATIONS, *OF_LOOPS), name
        order = self._order()
        if order not in (name, f"{name}:wait") or not self._first(name):
            return
        if order == name:
            os.kill(os.getpid(), signal.SIGKILL)
        self._stand_still(self.folder / f"go-{name}")

    def _order(self) -> str:
        assert self.folder is not None
        try:
            return (self.folder / ORDER_FILE).read_text().strip()
        except FileNotFoundError:
            return ""

    def _first(self, name: str) -> bool:
        assert self.folder is not None
        try:
            os.close(os.open(self.folder / f"reached-{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def _stand_still(self, go: Path) -> None:
        until = time.monotonic() + MAX_STILL_S
        never = threading.Event()
        while not go.exists() and time.monotonic() < until:
            never.wait(0.002)
