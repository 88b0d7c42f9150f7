"""Two gradings side by side: worked by hand."""

import pytest

from service.reporting.comparing import compare

PAIRS = [("a", 1.0, 1.0), ("b", 1.0, 0.5), ("c", 0.25, 1.0), ("d", 0.0, 0.0), ("e", None, 1.0), ("f", 1.0, None)]


def test_only_what_both_scored_is_compared() -> None:
    said = compare(PAIRS, seed=7)
    assert (said.n, said.left_out) == (4, 2)
    assert (said.before_mean, said.after_mean) == (0.5625, 0.625)
    assert said.difference.mean == pytest.approx(0.0625)
    assert (said.flips_up, said.flips_down) == (("c",), ("b",))
    assert said.agreement == 0.5
    assert said.kappa == 0.0, "half agree, as chance would have it"
    assert said.difference == compare(PAIRS, seed=7).difference, "the seed repeats the interval"
    assert said.difference.seed == 7


def test_without_a_pair_there_are_no_figures() -> None:
    said = compare([("a", None, 1.0)], seed=0)
    assert (said.n, said.left_out, said.before_mean, said.kappa, said.difference.mean) == (0, 1, None, None, None)
