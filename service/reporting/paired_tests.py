"""Tests of paired differences over the same tasks: how often chance alone would do as much."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import comb, fsum

import numpy as np

from service.reporting.intervals import Interval, mean_interval

NOTHING = 1e-12
"""A smaller difference is none: scores are sums of fractions."""
BLOCK = 1_000_000
"""Cells of draws by tasks in memory at once."""


@dataclass(frozen=True, slots=True)
class Paired:
    """Of ``after - before``."""

    tasks: int
    mean: float | None
    interval: Interval | None
    better: int
    worse: int
    sign_p: float | None
    permutation_p: float | None


def paired(before: Sequence[float], after: Sequence[float], seed: int, draws: int) -> Paired:
    """Return the mean difference with its interval and both tests. Raises ValueError for unequal lengths."""
    steps = [b - a for a, b in zip(before, after, strict=True)]
    better, worse = sum(s > NOTHING for s in steps), sum(s < -NOTHING for s in steps)
    return Paired(
        tasks=len(steps),
        mean=fsum(steps) / len(steps) if steps else None,
        interval=mean_interval(steps, seed, draws),
        better=better,
        worse=worse,
        sign_p=sign_test(better, worse),
        permutation_p=permutation_test(steps, seed, draws),
    )


def sign_test(better: int, worse: int) -> float | None:
    """Return the two-sided exact p of as many signs one way; ties are left out, null if there is nothing else.

    J. Arbuthnot 1710; W. J. Dixon, A. M. Mood, "The statistical sign test", JASA 41 (1946), 557-566.
    """
    n = better + worse
    if n == 0:
        return None
    tail = sum(comb(n, k) for k in range(max(better, worse), n + 1)) / 2**n
    return min(1.0, 2 * tail)


def permutation_test(steps: Sequence[float], seed: int, draws: int) -> float | None:
    """Return the two-sided p of so large a mean under random signs; null without differences, 1 if all are 0.

    R. A. Fisher, "The Design of Experiments" (1935), section 21. All signs are gone through where there are no more than
    ``draws``; else as many are drawn, and p is (1 + as large ones) / (1 + draws), never 0.
    """
    if not steps:
        return None
    values = np.asarray(steps, dtype=np.float64)
    seen = abs(float(values.sum())) - NOTHING * len(steps)
    if 2 ** len(steps) <= draws:
        signs = np.array(list(product((1.0, -1.0), repeat=len(steps))))
        return float((np.abs(signs @ values) >= seen).mean())
    generator = np.random.default_rng(seed)
    larger, left = 0, draws
    while left > 0:
        block = min(left, max(1, BLOCK // len(steps)))
        signs = 1 - 2 * generator.integers(0, 2, size=(block, len(steps)))
        larger += int((np.abs(signs @ values) >= seen).sum())
        left -= block
    return (1 + larger) / (1 + draws)
