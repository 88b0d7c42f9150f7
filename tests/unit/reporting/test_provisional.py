"""Figures of what is graded so far."""

from dataclasses import dataclass

import pytest

from service.reporting.provisional import Provisional, Sums
from service.reporting.provisional import provisional as of_sums
from service.reporting.success import wilson


@dataclass(frozen=True)
class OfTask:
    n: int
    points: float
    passed: int


def provisional(tasks: list[OfTask]) -> Provisional:
    """As the database sums them."""
    some = [t for t in tasks if t.n]
    return of_sums(Sums(
        sum(t.n for t in some), len(some), sum(t.points for t in some), sum(t.passed for t in some),
        sum(t.points**2 for t in some), sum(t.points * t.n for t in some), sum(t.n**2 for t in some),
    ))  # fmt: skip


def test_nothing_yet() -> None:
    found = provisional([OfTask(0, 0.0, 0)])
    assert (found.n, found.mean, found.mean_interval, found.pass_rate, found.pass_interval) == (
        0,
        None,
        None,
        None,
        None,
    )


def test_one_task_has_no_interval_over_tasks() -> None:
    found = provisional([OfTask(4, 3.0, 3)])
    assert (found.n, found.tasks, found.mean, found.mean_interval) == (4, 1, 0.75, None)
    assert found.pass_interval == wilson(3, 4)


def test_equal_clusters_are_the_interval_of_their_means() -> None:
    """Means of tasks 0, 0.5, 1: standard error of their mean is 0.5 / sqrt(3)."""
    found = provisional([OfTask(2, 0.0, 0), OfTask(2, 1.0, 1), OfTask(2, 2.0, 2)])
    assert found.mean == 0.5
    assert found.mean_interval is not None
    assert found.mean_interval == pytest.approx((0.0, 1.0))  # 0.5 ± 1.96 · 0.2887 is wider than what can be
    narrow = provisional([OfTask(2, 0.8, 0), OfTask(2, 1.0, 0), OfTask(2, 1.2, 0)])
    assert narrow.mean_interval == pytest.approx((0.5 - 1.959964 * 0.1 / 3**0.5, 0.5 + 1.959964 * 0.1 / 3**0.5))


def test_a_task_with_more_runs_weighs_more() -> None:
    assert provisional([OfTask(3, 3.0, 3), OfTask(1, 0.0, 0)]).mean == 0.75
