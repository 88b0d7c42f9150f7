"""Intervals by resampling tasks: what they are, that they can be made again, and where there are none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.reporting import intervals
from service.reporting.intervals import Rows, cluster_ratios, mean_interval, mean_intervals


def test_an_interval_can_be_made_again_from_seed_and_tasks() -> None:
    values = [0.1, 0.4, 0.9, 1.0, 0.0, 0.5]
    counts = np.random.default_rng(7).multinomial(6, [1 / 6] * 6, size=1000)
    low, high = np.quantile(counts @ np.array(values) / 6, (0.025, 0.975))
    assert mean_interval(values, 7, 1000) == pytest.approx((low, high))
    assert mean_interval(values, 8, 1000) != mean_interval(values, 7, 1000)


def test_many_draws_are_the_same_in_pieces_and_whole() -> None:
    values = list(np.linspace(0, 1, 40))
    counts = np.random.default_rng(3).multinomial(40, [1 / 40] * 40, size=1100)
    low, high = np.quantile(counts @ np.array(values) / 40, (0.025, 0.975))
    assert mean_interval(values, 3, 1100) == pytest.approx((low, high))


def test_a_mean_of_equal_values_has_no_width() -> None:
    assert mean_interval([0.25] * 9, 0, 200) == pytest.approx((0.25, 0.25))


def test_fewer_than_two_tasks_have_no_interval() -> None:
    assert mean_interval([], 0, 200) is None
    assert mean_interval([0.5], 0, 200) is None
    alone = Rows(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]))
    assert cluster_ratios(alone, 0, 200) == [None]


def test_runs_of_one_task_are_drawn_together() -> None:
    """Four samples of each of two tasks, one all solved and one never: by runs it would be far narrower than 0 to 1."""
    clustered = cluster_ratios(Rows(np.array([[4.0, 0.0]]), np.array([[4.0, 4.0]])), 0, 1000)[0]
    assert clustered == (0.0, 1.0)


def test_a_draw_without_any_task_of_a_row_says_nothing_of_it() -> None:
    """A row with two tasks of twenty: many draws have neither, and none of those counts as 0."""
    bottoms = np.zeros((1, 20))
    bottoms[0, :2] = 1.0
    found = cluster_ratios(Rows(bottoms * 0.5, bottoms), 1, 500)[0]
    assert found == pytest.approx((0.5, 0.5))


def test_rows_see_the_same_draws() -> None:
    """Differences of rows are paired: one that lies the same above the other on every task has a constant difference."""
    low = np.linspace(0, 0.5, 12)
    rows = Rows(np.stack([low, low + 0.25]), np.ones((2, 12)))
    first, second = cluster_ratios(rows, 5, 400)
    assert first is not None
    assert second is not None
    assert (second[0] - first[0], second[1] - first[1]) == pytest.approx((0.25, 0.25))


def test_many_means_together_are_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "TOGETHER", 2)
    rows = [[0.1, 0.5, 0.9], [1.0], [0.0, 0.0, 1.0], [0.2, 0.4], [], [0.3, 0.3, 0.8]]
    assert mean_intervals(rows, 2, 300) == [mean_interval(row, 2, 300) for row in rows]
    assert mean_intervals([], 2, 300) == []


def test_shapes_must_fit() -> None:
    with pytest.raises(ValueError, match="same rows"):
        Rows(np.ones((1, 2)), np.ones((2, 1)))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.integers(0, 2**32))
def test_an_interval_is_in_order_and_within_the_values(values: list[float], seed: int) -> None:
    found = mean_interval(values, seed, 100)
    assert found is not None
    assert min(values) - 1e-9 <= found[0] <= found[1] <= max(values) + 1e-9
