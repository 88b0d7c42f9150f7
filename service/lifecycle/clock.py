"""Time for event stamps: UTC at one instant plus monotonic difference, so that a wall clock's jumps never show."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Clock:
    """Anchored when made. Durations and deadlines come from the event loop's monotonic clock, never from here."""

    anchor: datetime = field(default_factory=lambda: datetime.fromtimestamp(time.time(), UTC))
    started: float = field(default_factory=time.monotonic)

    def now(self) -> datetime:
        return self.anchor + timedelta(seconds=time.monotonic() - self.started)
