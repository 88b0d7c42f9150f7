"""When something of many parts will be over, from how fast it has gone so far."""

import math
from dataclasses import dataclass

from service.domain.sums import Z_90

ENOUGH = 5
"""Parts that must be done before their pace says anything."""


@dataclass(frozen=True, slots=True)
class Remaining:
    """Seconds from now."""

    p50_s: float
    p90_s: float


def per_hour(done: int, elapsed_s: float) -> float | None:
    """Return parts per hour; null while none is done."""
    return None if done < 1 or elapsed_s <= 0 else done / elapsed_s * 3600


def remaining(done: int, left: int, elapsed_s: float) -> Remaining | None:
    """Return how long ``left`` parts will take; null while too few are done to tell.

    Counts of done and of coming parts scatter as those of a Poisson process do.
    """
    pace = per_hour(done, elapsed_s)
    if pace is None or done < ENOUGH or left < 1:
        return None
    p50 = left / pace * 3600
    return Remaining(p50, p50 * (1 + Z_90 * math.sqrt(1 / done + 1 / left)))
