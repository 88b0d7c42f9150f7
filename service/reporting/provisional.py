"""Figures of runs that are still coming in: from sums by task alone, without anything that a process must load for it."""

import math
from dataclasses import dataclass

from service.reporting.success import Z_95, wilson

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Sums:
    """Over tasks, each with n runs that count and the sum p of their fractions."""

    n: int
    tasks: int
    """With at least one run that counts."""
    points: float
    passed: int
    """Runs with fraction 1."""
    points_squared: float
    """Σ p²"""
    points_by_n: float
    """Σ p · n"""
    n_squared: float
    """Σ n²"""


@dataclass(frozen=True, slots=True)
class Provisional:
    n: int
    tasks: int
    mean: float | None
    """Of the fractions; null without a run."""
    mean_interval: Interval | None
    """95 %; null with fewer than two tasks."""
    pass_rate: float | None
    pass_interval: Interval | None
    """95 % Wilson, over runs; with several samples of a task it is too narrow."""


def provisional(sums: Sums) -> Provisional:
    """Return an agent's figures so far."""
    if sums.n == 0:
        return Provisional(0, 0, None, None, None, None)
    interval = wilson(sums.passed, sums.n)
    mean = sums.points / sums.n
    return Provisional(sums.n, sums.tasks, mean, _cluster_interval(sums, mean), sums.passed / sums.n, interval)


def _cluster_interval(sums: Sums, mean: float) -> Interval | None:
    """Return the interval of a mean over runs whose tasks are the units, cut to 0 to 1.

    W. G. Cochran, "Sampling Techniques", 3rd ed. (1977), 6.4 (variance of a ratio): with u = p - mean · n of each of G tasks,
    var = G / (G - 1) · Σu² / N². Null with fewer than two tasks. Where all tasks agree, its width is 0: look at n.
    """
    if sums.tasks < 2:
        return None
    squares = sums.points_squared - 2 * mean * sums.points_by_n + mean * mean * sums.n_squared
    spread = Z_95 * math.sqrt(sums.tasks / (sums.tasks - 1) * max(0.0, squares)) / sums.n
    return max(0.0, mean - spread), min(1.0, mean + spread)
