"""Keeps the browser of surface ``browser`` on the screen: one that ends is started again, not endlessly often."""

import fcntl
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import session
import xscreen

MOST_STARTS, WITHIN_S = 5, 60.0
FIRST_PAUSE_S, MOST_PAUSE_S = 0.25, 8.0
BROWSER = ("chromium", "--start-maximized", "about:blank")
_GIVEN_UP = (
    f"The browser ended {MOST_STARTS} times within {WITHIN_S:.0f} seconds.",
    "It is started again when a minute has passed since the first of them.",
)


class Pace:
    """When the next start may be: after a pause that doubles, at most :data:`MOST_STARTS` in :data:`WITHIN_S`."""

    def __init__(self) -> None:
        self._starts: deque[float] = deque(maxlen=MOST_STARTS)
        self._pause = FIRST_PAUSE_S

    def started(self, now: float) -> None:
        self._starts.append(now)

    def exhausted(self, now: float) -> bool:
        return len(self._starts) == MOST_STARTS and now - self._starts[0] < WITHIN_S

    def pause(self, now: float) -> float:
        """Return how many seconds to wait before the next start."""
        if self._starts and now - self._starts[-1] >= WITHIN_S:
            self._pause = FIRST_PAUSE_S
        if self.exhausted(now):
            return WITHIN_S - (now - self._starts[0])
        pause, self._pause = self._pause, min(MOST_PAUSE_S, self._pause * 2)
        return pause


def keep() -> None:
    """Run the browser for as long as there is a screen."""
    pace = Pace()
    while session.answers():
        pace.started(time.monotonic())
        with suppress(session.SessionFailed):  # counted like one that ended at once
            session.start(BROWSER).wait()
        now = time.monotonic()
        if pace.exhausted(now):
            _say(_GIVEN_UP)
        time.sleep(pace.pause(now))
        _say(())


def _say(lines: tuple[str, ...]) -> None:
    if session.answers():
        with xscreen.opened(session.ENVIRONMENT["DISPLAY"]) as screen:
            screen.paint(lines)


def main() -> None:
    with (session.RUNTIME / "keeper.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        keep()


if __name__ == "__main__":
    main()
