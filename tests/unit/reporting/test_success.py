import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.reporting.success import Result, success, wilson


@pytest.mark.parametrize(
    ("passed", "n", "low", "high"),
    # Newcombe, "Two-sided confidence intervals for the single proportion", Stat. Med. 17 (1998), table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_published_intervals(passed: int, n: int, low: float, high: float) -> None:
    got = wilson(passed, n)
    assert (round(got[0], 4), round(got[1], 4)) == (low, high)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_its_proportion(given_: tuple[int, int]) -> None:
    passed, n = given_
    low, high = wilson(passed, n)
    assert 0 <= low <= passed / n + 1e-12
    assert passed / n - 1e-12 <= high <= 1


def test_no_proportion() -> None:
    for passed, n in ((0, 0), (2, 1), (-1, 1)):
        with pytest.raises(ValueError, match="proportion"):
            wilson(passed, n)


def test_what_is_not_graded_is_left_out_and_counted() -> None:
    got = success(
        [
            Result("graded", "completed", 2.0, 2.0),
            Result("graded", "wall_clock", 0.5, 2.0),
            Result("ungraded", "sandbox_lost"),
            Result("ungraded", "sandbox_lost"),
            Result("cancelled", "cancelled"),
            Result(None, None),
        ]
    )
    assert (got.n, got.graded, got.passed, got.pass_rate) == (6, 2, 1, 0.5)
    assert got.mean_fraction is not None
    assert math.isclose(got.mean_fraction, 0.625)
    assert got.excluded == {"cancelled:cancelled": 1, "unfinished:-": 1, "ungraded:sandbox_lost": 2}
    assert got.n == got.graded + sum(got.excluded.values())


def test_an_empty_set_has_no_rate() -> None:
    got = success([])
    assert (got.n, got.pass_rate, got.pass_interval, got.mean_fraction) == (0, None, None, None)
