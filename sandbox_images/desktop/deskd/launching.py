"""How programs of the session are started and waited for, and what there is to say where that fails."""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

NUMBER = 1
RUNTIME = Path("/tmp/run-user")  # noqa: S108 - inside the sandbox, whose /tmp is its own
ENVIRONMENT = {
    "DISPLAY": f":{NUMBER}",
    "XDG_RUNTIME_DIR": str(RUNTIME),
    "DBUS_SESSION_BUS_ADDRESS": f"unix:path={RUNTIME}/bus",
    "GSETTINGS_BACKEND": "memory",
    "NO_AT_BRIDGE": "1",
}
"""Of every program on the screen."""
_POLL_S = 0.01


class SessionFailed(Exception):
    """There is no screen. ``type`` is a stable word, ``detail`` one sentence."""

    def __init__(self, type_: str, detail: str) -> None:
        super().__init__(f"{type_}: {detail}")
        self.type, self.detail = type_, detail


def start(argv: Sequence[str], log: Path | None = None) -> "subprocess.Popen[bytes]":
    """Start a program on the screen, in a process session of its own. Raises SessionFailed where it cannot be started."""
    try:
        with open(log or os.devnull, "wb") as errors:  # noqa: PTH123
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd="/workspace",
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,
            )
    except OSError as error:
        raise SessionFailed("start_failed", f"{argv[0]} cannot be started: {error.strerror}") from error


def until(done: Callable[[], bool], deadline_s: float, type_: str, detail: str) -> None:
    """Wait until ``done``. Raises SessionFailed when ``deadline_s`` seconds have passed."""
    end = time.monotonic() + deadline_s
    while not done():
        if time.monotonic() > end:
            raise SessionFailed(type_, f"{detail} after {deadline_s:.0f} s")
        time.sleep(_POLL_S)
