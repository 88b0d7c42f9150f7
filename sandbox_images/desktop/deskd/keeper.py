"""Keeps the browser of surface ``browser`` on the screen: one that ends is started again, not endlessly often."""

import fcntl
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import xscreen
import xserver
from launching import ENVIRONMENT, RUNTIME, SessionFailed, start
from restarts import MOST_STARTS, WITHIN_S, Pace

BROWSER = ("chromium", "--start-maximized", "about:blank")
_LOOK_S = 1.0
_GIVEN_UP = (
    f"The browser ended {MOST_STARTS} times within {WITHIN_S:.0f} seconds.",
    "It is started again when a minute has passed since the first of them.",
)


def keep() -> None:
    """Run the browser for as long as there is a screen."""
    pace = Pace()
    while xserver.answers():
        pace.started(time.monotonic())
        with suppress(SessionFailed):  # counted like one that ended at once
            _watch(start(BROWSER))
        now = time.monotonic()
        if pace.exhausted(now):
            _say(_GIVEN_UP)
        time.sleep(pace.pause(now))
        _say(())


def _watch(browser: "subprocess.Popen[bytes]") -> None:
    """Wait for its end; a window that was made an icon comes back, for there is no panel to call it back from."""
    with suppress(*xscreen.GONE), xscreen.opened(ENVIRONMENT["DISPLAY"]) as screen:
        while browser.poll() is None:
            screen.restore("chromium")
            with suppress(subprocess.TimeoutExpired):
                browser.wait(_LOOK_S)
    browser.kill()  # it has ended, or its screen is gone
    browser.wait()


def _say(lines: tuple[str, ...]) -> None:
    if xserver.answers():
        with xscreen.opened(ENVIRONMENT["DISPLAY"]) as screen:
            screen.paint(lines)


def main() -> None:
    with (RUNTIME / "keeper.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        keep()


if __name__ == "__main__":
    main()
