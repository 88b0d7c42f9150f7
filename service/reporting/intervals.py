"""Bootstrap intervals of ratios over tasks: percentiles of what the figure would be, had other tasks been drawn.

Draws are reproducible outside this program: draw number d takes row d of
``numpy.random.default_rng(seed).integers(0, n, size=(draws, n))`` as places in the list of tasks, which is ordered by id.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CELLS = 1_000_000
"""Most cells of draws by tasks that are in memory at once."""
LOW, HIGH = 2.5, 97.5
"""Percentiles of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """One per row that was given; NaN where undefined."""

    low: Floats
    high: Floats
    draws: NDArray[np.int64]
    """Draws in which the figure was defined, out of which the percentiles are."""

    def at(self, row: int) -> tuple[float, float] | None:
        low, high = float(self.low[row]), float(self.high[row])
        return None if np.isnan(low) else (low, high)


def resampled(n: int, seed: int, draws: int) -> Iterator[Floats]:
    """Yield, in blocks of draws, how often each of ``n`` tasks was drawn. Raises ValueError unless n ≥ 1."""
    if n < 1:
        raise ValueError("nothing to draw from")
    generator = np.random.default_rng(seed)
    left = draws
    while left > 0:
        block = min(left, max(1, CELLS // n))
        places = generator.integers(0, n, size=(block, n)) + np.arange(block)[:, None] * n
        yield np.bincount(places.ravel(), minlength=block * n).reshape(block, n).astype(np.float64)
        left -= block


def cluster_ratios(tops: Floats, bottoms: Floats, seed: int, draws: int) -> Intervals:
    """Return the percentile intervals of Σ top / Σ bottom, tasks drawn with everything that belongs to them.

    ``tops[row, task]`` and ``bottoms[row, task]``: a mean over tasks has bottom 1 where the task is there and 0 where it is not;
    a rate over runs has the task's runs. All rows see the same draws, so that differences between rows are paired.

    B. Efron, R. Tibshirani, "An Introduction to the Bootstrap" (1993), chapters 8 and 13; tasks are the units since runs of one
    task are not independent. A draw in which a row's bottoms sum to 0 says nothing of that row and is left out of its
    percentiles. Undefined for a row with fewer than two tasks whose bottom is above 0. Raises ValueError for unequal shapes.
    """
    if tops.shape != bottoms.shape or tops.ndim != 2:
        raise ValueError("tops and bottoms are not of the same rows and tasks")
    rows, n = tops.shape
    low, high = np.full(rows, np.nan), np.full(rows, np.nan)
    defined = np.zeros(rows, dtype=np.int64)
    if n < 2:
        return Intervals(low, high, defined)
    figures = _figures(tops, bottoms, seed, draws)
    for row in range(rows):
        found = figures[:, row][~np.isnan(figures[:, row])]
        defined[row] = len(found)
        if len(found) and np.count_nonzero(bottoms[row]) > 1:
            low[row], high[row] = np.percentile(found, (LOW, HIGH))
    return Intervals(low, high, defined)


def _figures(tops: Floats, bottoms: Floats, seed: int, draws: int) -> Floats:
    blocks: list[Floats] = []
    for counts in resampled(tops.shape[1], seed, draws):
        top, bottom = counts @ tops.T, counts @ bottoms.T
        blocks.append(np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0))
    return np.concatenate(blocks)


def mean_interval(values: Sequence[float], seed: int, draws: int) -> tuple[float, float] | None:
    """Return the percentile interval of a mean; null for fewer than two values."""
    if len(values) < 2:
        return None
    tops = np.asarray([values], dtype=np.float64)
    return cluster_ratios(tops, np.ones_like(tops), seed, draws).at(0)


def paired_difference(
    before: Sequence[float], after: Sequence[float], seed: int, draws: int
) -> tuple[float, float] | None:
    """Return the interval of the mean of ``after - before`` over the same tasks. Raises ValueError for unequal lengths."""
    return mean_interval([b - a for a, b in zip(before, after, strict=True)], seed, draws)
