"""Breakers: a provider that fails is left alone, and found again by one probe at a time (NEEDS B12). Pure."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

RESTART = 8
"""Requests at once with which a provider is used again after an outage."""


class BreakerState(StrEnum):
    CLOSED = "closed"
    """Requests pass."""
    OPEN = "open"
    """None passes; runs that need it are held."""
    HALF_OPEN = "half_open"
    """One probe is under way."""


class Outcome(StrEnum):
    """How one try ended, as far as the provider's state goes."""

    ANSWERED = "answered"
    """Any answer that is about the request: also a 400 or a 401."""
    LIMITED = "limited"
    """429."""
    FAILED = "failed"
    """5xx, no connection, a stalled or broken answer."""


@dataclass(frozen=True, slots=True)
class BreakerRules:
    window_s: float = 60.0
    """How long a try counts."""
    min_failures: int = 5
    """In the window, before the breaker may open."""
    rate: float = 0.5
    """Part of the tries of the window that must have failed."""
    first_probe_s: float = 10.0
    """From opening to the first probe; doubles with each probe that fails."""
    last_probe_s: float = 120.0
    probe_s: float = 60.0
    """Longest a probe takes; then another process may try."""

    def pause_s(self, failures: int) -> float:
        """Return the seconds until the next probe after ``failures`` failed ones in a row (the opening counts as one)."""
        return min(self.last_probe_s, self.first_probe_s * 2.0 ** min(max(failures - 1, 0), 30))


@dataclass(slots=True)
class Window:
    """The tries of the last seconds; at most ``most`` of them are kept."""

    rules: BreakerRules
    most: int = 1000
    _tries: deque[tuple[float, bool]] = field(default_factory=deque[tuple[float, bool]])

    def add(self, now: float, outcome: Outcome) -> bool:
        """Count a try; return whether the breaker is to open. ``now``: monotonic seconds."""
        self._tries.append((now, outcome is not Outcome.ANSWERED))
        while len(self._tries) > self.most or self._tries[0][0] < now - self.rules.window_s:
            self._tries.popleft()
        failed = sum(1 for bad in self._bad() if bad)
        return failed >= self.rules.min_failures and failed >= self.rules.rate * len(self._tries)

    def clear(self) -> None:
        self._tries.clear()

    def _bad(self) -> Iterator[bool]:
        return (bad for _, bad in self._tries)


@dataclass(slots=True)
class AdaptiveLimit:
    """How many requests at once: all that is allowed until the provider says 429, then half of what was under way.

    From there, and from ``RESTART`` after an outage, it doubles with each round of successes up to where it last was
    good, and grows by one a round beyond. A burst of 429 is one event: it halves at most once in ``settle_s``.
    """

    most: int
    limit: float = 0.0
    settle_s: float = 2.0
    _threshold: float = 0.0
    _halved_at: float = float("-inf")

    def __post_init__(self) -> None:
        self.limit = self._threshold = float(self.most)

    @property
    def present(self) -> int:
        return max(1, min(self.most, int(self.limit)))

    def answered(self, in_use: int) -> None:
        """Count a success; ``in_use`` requests were under way. An idle limit does not grow: nothing was learnt."""
        if in_use * 2 < self.present:
            return
        grown = 1.0 if self.limit < self._threshold else 1.0 / max(self.limit, 1.0)
        self.limit = min(float(self.most), self.limit + grown)

    def limited(self, now: float, in_use: int) -> None:
        if now - self._halved_at < self.settle_s:
            return
        self._halved_at = now
        self.limit = self._threshold = max(1.0, min(self.limit, float(in_use)) / 2)

    def restart(self) -> None:
        self._threshold = max(float(RESTART), self.limit)
        self.limit = min(float(RESTART), self.limit)
