"""Several samples: unbiased estimates against all subsets, and the union of runs."""

from itertools import combinations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.reporting.pass_at_k import all_of, any_of, pass_at_k, union_of


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_estimates_are_shares_of_all_subsets(given_: tuple[int, int, int]) -> None:
    n, passed, k = given_
    subsets = list(combinations([True] * passed + [False] * (n - passed), k))
    assert any_of(n, passed, k) == pytest.approx(sum(any(s) for s in subsets) / len(subsets))
    assert all_of(n, passed, k) == pytest.approx(sum(all(s) for s in subsets) / len(subsets))


def test_tasks_with_too_few_samples_are_left_out() -> None:
    found = pass_at_k({"a": [True, False, False], "b": [True], "c": [True, True]}, 2)
    assert (found.tasks, found.left_out) == (2, 1)
    assert found.any == pytest.approx((2 / 3 + 1) / 2)
    assert found.all == pytest.approx((0 + 1) / 2)
    assert pass_at_k({"b": [True]}, 2).any is None


@pytest.mark.parametrize(("n", "passed", "k"), [(2, 1, 3), (2, 3, 1), (2, 1, 0)])
def test_impossible_numbers(n: int, passed: int, k: int) -> None:
    with pytest.raises(ValueError, match="samples"):
        any_of(n, passed, k)
    with pytest.raises(ValueError, match="samples"):
        all_of(n, passed, k)


def test_union_takes_each_criterion_once() -> None:
    rows = [("t", "c1", False), ("t", "c1", True), ("t", "c2", False), ("u", "c1", False)]
    results = pl.DataFrame(rows, schema=["task_id", "criterion", "passed"], orient="row")
    found = union_of(results)
    assert (found.criteria, found.passed) == (3, 1)
    assert found.rate == pytest.approx(1 / 3)
    assert union_of(results.clear()).rate is None
