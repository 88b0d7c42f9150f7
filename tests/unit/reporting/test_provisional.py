"""Figures of what is graded so far."""

import pytest

from service.reporting.provisional import OfTask, provisional
from service.reporting.success import wilson


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
