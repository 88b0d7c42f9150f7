"""How often a program that keeps ending is started again."""

from collections import deque

MOST_STARTS, WITHIN_S = 5, 60.0
FIRST_PAUSE_S, MOST_PAUSE_S = 0.25, 8.0


class Pace:
    """When the next start may be: after a pause that doubles, at most :data:`MOST_STARTS` in :data:`WITHIN_S`.

    Every ``now`` is seconds of one clock that never goes back.
    """

    def __init__(self) -> None:
        self._starts: deque[float] = deque(maxlen=MOST_STARTS)
        self._pause = FIRST_PAUSE_S

    def started(self, now: float) -> None:
        self._starts.append(now)

    def exhausted(self, now: float) -> bool:
        """Tell whether there have been as many starts as there may be."""
        return len(self._starts) == MOST_STARTS and now - self._starts[0] < WITHIN_S

    def pause(self, now: float) -> float:
        """Return how many seconds to wait before the next start; a program that ran for long begins anew."""
        if self._starts and now - self._starts[-1] >= WITHIN_S:
            self._pause = FIRST_PAUSE_S
        if self.exhausted(now):
            return WITHIN_S - (now - self._starts[0])
        pause, self._pause = self._pause, min(MOST_PAUSE_S, self._pause * 2)
        return pause
