"""Sums of many like things, as ranges: what a thousand runs will take, from what a few took."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

Z_90 = 1.2815515594600038
"""90 % quantile of the normal distribution."""
ASSUMED_SPREAD = 0.5
"""Standard deviation over mean where fewer than two were measured, or a size was only assumed."""


@dataclass(frozen=True, slots=True)
class Total:
    """A sum as a normal variable; the sum of many runs nearly is one."""

    mean: float = 0.0
    variance: float = 0.0

    @property
    def p10(self) -> float:
        return max(0.0, self.mean - Z_90 * math.sqrt(self.variance))

    @property
    def p50(self) -> float:
        return self.mean

    @property
    def p90(self) -> float:
        return self.mean + Z_90 * math.sqrt(self.variance)

    def over(self, parts: float) -> "Total":
        """Return the time that it takes when so many work side by side."""
        return Total(self.mean / parts, self.variance / parts**2)


def total(times: int, n: int, mean: float, variance: float | None) -> Total:
    """Return the sum of ``times`` things of which ``n`` ≥ 1 were measured.

    Two doubts: how far single ones scatter, which evens out, and how well so few show the mean, which does not.
    """
    spread = (mean * ASSUMED_SPREAD) ** 2 if variance is None else variance
    return Total(times * mean, times * spread + times**2 * spread / n)


def together(totals: Iterable[Total]) -> Total:
    """Return the sum of sums that have nothing to do with one another."""
    found = list(totals)
    return Total(sum(one.mean for one in found), sum(one.variance for one in found))
