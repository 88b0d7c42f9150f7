"""Figures of runs that are still coming in: from sums by task alone, without anything that a process must load for it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from service.reporting.success import Z_95, wilson

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class OfTask:
    """What one agent's runs of one task came to."""

    n: int
    points: float
    """Sum of fractions, 0 to n."""
    passed: int
    """Those with fraction 1."""


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


def provisional(tasks: Iterable[OfTask]) -> Provisional:
    """Return an agent's figures so far."""
    found = [task for task in tasks if task.n > 0]
    n, passed = sum(t.n for t in found), sum(t.passed for t in found)
    if n == 0:
        return Provisional(0, 0, None, None, None, None)
    mean = math.fsum(t.points for t in found) / n
    return Provisional(n, len(found), mean, _cluster_interval(found, mean, n), passed / n, wilson(passed, n))


def _cluster_interval(tasks: list[OfTask], mean: float, n: int) -> Interval | None:
    """Return the interval of a mean over runs whose tasks are the units, cut to 0 to 1.

    W. G. Cochran, "Sampling Techniques", 3rd ed. (1977), 6.4 (variance of a ratio): with u = points - mean · n of each of G tasks,
    var = G / (G - 1) · Σu² / N². Null with fewer than two tasks. Where all tasks agree, its width is 0: look at n.
    """
    count = len(tasks)
    if count < 2:
        return None
    squares = math.fsum((t.points - mean * t.n) ** 2 for t in tasks)
    spread = Z_95 * math.sqrt(count / (count - 1) * squares) / n
    return max(0.0, mean - spread), min(1.0, mean + spread)
