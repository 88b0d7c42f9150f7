"""Sign and permutation tests, against sums that can be done by hand and against scipy."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from service.reporting.paired_tests import paired, permutation_test, sign_test


def test_sign_test_by_hand() -> None:
    assert sign_test(5, 0) == pytest.approx(2 / 32)
    assert sign_test(8, 2) == pytest.approx(2 * (45 + 10 + 1) / 1024)
    assert sign_test(3, 3) == 1.0
    assert sign_test(0, 0) is None


@given(st.integers(0, 60), st.integers(0, 60))
def test_sign_test_is_the_binomial_test(better: int, worse: int) -> None:
    if better + worse:
        theirs: Any = stats.binomtest(better, better + worse)  # pyright: ignore[reportUnknownMemberType]
        assert sign_test(better, worse) == pytest.approx(theirs.pvalue)


def test_all_signs_are_gone_through_where_there_are_few() -> None:
    assert permutation_test([1.0, 1.0, 1.0], 0, 1000) == pytest.approx(2 / 8)
    assert permutation_test([1.0, 2.0, -0.5], 0, 1000) == pytest.approx(4 / 8)
    assert permutation_test([0.0, 0.0], 0, 1000) == 1.0
    assert permutation_test([], 0, 1000) is None


def test_drawn_signs_come_near_to_all_of_them() -> None:
    steps = [0.3, -0.1, 0.2, 0.4, 0.1, -0.2, 0.5, 0.05, 0.3, -0.1, 0.2, 0.1]
    whole = permutation_test(steps, 0, 10_000)
    drawn = permutation_test(steps, 0, 4000)
    assert whole is not None
    assert drawn is not None
    assert drawn != whole
    assert drawn == pytest.approx(whole, abs=0.02)


def test_drawn_p_is_never_zero() -> None:
    assert permutation_test([1.0] * 60, 0, 500) == pytest.approx(1 / 501)


def test_paired_counts_ties_apart() -> None:
    found = paired([0.0, 0.5, 1.0, 0.2], [1.0, 0.5, 0.0, 0.2 + 1e-15], 0, 200)
    assert (found.tasks, found.better, found.worse, found.mean) == (4, 1, 1, pytest.approx(0.0))
    with pytest.raises(ValueError, match="argument"):
        paired([1.0], [], 0, 100)
