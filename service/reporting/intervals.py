"""Bootstrap intervals of ratios over tasks: what a figure would be, had other tasks been drawn.

The draws are those of :func:`service.reporting.drawing.weights`, over tasks in the order of their ids: whoever has the tables and
the seed can make them again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.reporting.drawing import Floats, ratio, weights
from service.reporting.drawing import interval as percentiles

Interval = tuple[float, float]
TOGETHER = 500
"""Rows that are drawn together: bounds memory."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Figures that are Σ top / Σ bottom over the same tasks; ``tops[row, task]``, ``bottoms[row, task]``.

    A mean over tasks has bottom 1 where the task is there and 0 where it is not; a rate over runs has the task's runs.
    """

    tops: Floats
    bottoms: Floats

    def __post_init__(self) -> None:
        if self.tops.shape != self.bottoms.shape or self.tops.ndim != 2:
            raise ValueError("tops and bottoms are not of the same rows and tasks")


def cluster_ratios(rows: Rows, seed: int, draws: int) -> list[Interval | None]:
    """Return each row's 95 % percentile interval, tasks drawn with everything that belongs to them.

    B. Efron, R. Tibshirani, "An Introduction to the Bootstrap" (1993), chapters 8 and 13; tasks are the units since runs of one
    task are not independent. A draw in which a row's bottoms sum to 0 says nothing of that row and is left out of it. Null for a
    row with fewer than two tasks whose bottom is above 0. All rows see the same draws: differences between them are paired.
    """
    drawn = ratios_drawn(rows, seed, draws)
    enough = np.count_nonzero(rows.bottoms > 0, axis=1) > 1
    if len(drawn) > 1 and not np.isnan(drawn).any():
        low, high = np.quantile(drawn, (0.025, 0.975), axis=0).tolist()
        return [(low[row], high[row]) if enough[row] else None for row in range(len(rows.tops))]
    return [percentiles(drawn[:, row]) if enough[row] else None for row in range(len(rows.tops))]


def ratios_drawn(rows: Rows, seed: int, draws: int) -> Floats:
    """Return ``figure[draw, row]``; NaN where a draw says nothing of a row."""
    blocks = [ratio(w @ rows.tops.T, w @ rows.bottoms.T) for w in weights(rows.tops.shape[1], draws, seed)]
    return np.concatenate(blocks) if blocks else np.empty((0, len(rows.tops)))


def mean_interval(values: Sequence[float], seed: int, draws: int) -> Interval | None:
    """Return the percentile interval of a mean; null for fewer than two values."""
    tops = np.asarray([values], dtype=np.float64).reshape(1, -1)
    return cluster_ratios(Rows(tops, np.ones_like(tops)), seed, draws)[0]


def mean_intervals(rows: Sequence[Sequence[float]], seed: int, draws: int) -> list[Interval | None]:
    """Return :func:`mean_interval` of each row; rows of one length are drawn together, which costs far less."""
    found: list[Interval | None] = [None] * len(rows)
    by_length: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        by_length.setdefault(len(row), []).append(place)
    for length, places in by_length.items():
        for start in range(0, len(places) if length > 1 else 0, TOGETHER):
            part = places[start : start + TOGETHER]
            tops = np.asarray([rows[place] for place in part], dtype=np.float64)
            for place, one in zip(part, cluster_ratios(Rows(tops, np.ones_like(tops)), seed, draws), strict=True):
                found[place] = one
    return found
