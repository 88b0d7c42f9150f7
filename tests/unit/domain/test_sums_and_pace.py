"""Ranges of sums, and when something will be over."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.ids import new_ids
from service.domain.pace import per_hour, remaining
from service.domain.sums import ASSUMED_SPREAD, Total, together, total


def test_a_sum_of_many_scatters_less_than_each() -> None:
    few, many = total(1, 10**6, 2.0, 1.0), total(100, 10**6, 2.0, 1.0)
    assert many.p50 == 200.0
    assert (many.p90 - many.p50) / many.p50 == pytest.approx((few.p90 - few.p50) / few.p50 / 10, rel=1e-3)


def test_a_mean_that_few_show_stays_a_doubt() -> None:
    """As a simulation has it: draw four, then their evaluation of a hundred, and look at what the four would have said."""
    draw, wrong, times = random.Random(7), 0, 4000
    for _ in range(times):
        seen = [draw.gauss(10, 2) for _ in range(4)]
        mean = sum(seen) / 4
        variance = sum((x - mean) ** 2 for x in seen) / 3
        wrong += sum(draw.gauss(10, 2) for _ in range(100)) > total(100, 4, mean, variance).p90
    assert 0.08 < wrong / times < 0.2


def test_one_run_is_taken_to_scatter() -> None:
    found = total(1, 1, 4.0, None)
    assert found.variance == pytest.approx(2 * (4 * ASSUMED_SPREAD) ** 2)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), max_size=5))
def test_ranges_are_in_order_and_never_negative(parts: list[tuple[float, float]]) -> None:
    found = together(Total(*part) for part in parts)
    assert 0 <= found.p10 <= found.p50 <= found.p90
    assert found.over(2).p50 == pytest.approx(found.p50 / 2)


def test_a_pace_needs_something_done() -> None:
    assert per_hour(0, 100) is None
    assert per_hour(5, 0) is None
    assert per_hour(5, 1800) == 10
    assert remaining(4, 10, 3600) is None
    assert remaining(5, 0, 3600) is None


def test_what_is_left_takes_as_long_as_what_is_done_did() -> None:
    found = remaining(100, 50, 7200)
    assert found is not None
    assert found.p50_s == pytest.approx(3600)
    assert found.p90_s == pytest.approx(3600 * (1 + 1.2815515594600038 * math.sqrt(1 / 100 + 1 / 50)))


def test_ids_that_are_made_together_are_in_order() -> None:
    found = new_ids("run", 3000)
    assert found == sorted(found)
    assert len(set(found)) == 3000
