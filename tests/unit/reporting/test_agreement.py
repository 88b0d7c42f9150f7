"""Golden vectors of the papers' figures, and the cases in which a figure is undefined."""

import math

import pytest

from service.reporting import agreement as a

FIRST = [1, 1, 0, 0, 1, 0, 1, 1, 0, 0]
SECOND = [1, 0, 0, 0, 1, 0, 1, 1, 1, 0]
COUNTS = [(0, 3), (1, 2), (3, 0), (3, 0), (2, 1), (0, 3)]


def test_cohens_kappa() -> None:
    assert a.cohen_kappa(FIRST, SECOND) == pytest.approx(0.6)
    assert a.cohen_kappa(SECOND, FIRST) == pytest.approx(0.6)
    assert a.cohen_kappa(FIRST, FIRST) == 1.0
    assert a.cohen_kappa([0, 1], [1, 0]) == pytest.approx(-1.0)


def test_cohens_kappa_is_undefined_for_one_label_and_for_nothing() -> None:
    assert a.cohen_kappa([1, 1], [1, 1]) is None
    assert a.cohen_kappa([], []) is None
    assert a.cohen_kappa([1, 1], [0, 0]) == 0.0


def test_fleiss_kappa() -> None:
    assert a.fleiss_kappa(COUNTS) == pytest.approx(0.555556, abs=1e-6)
    assert a.fleiss_kappa([(0, 3)] * 5) is None
    assert a.fleiss_kappa([]) is None
    assert a.fleiss_kappa([(1, 0), (0, 1)]) is None


@pytest.mark.parametrize("counts", [[(0, 3), (1, 1)], [(0, 3), (3,)], [(4, -1), (1, 2)]])
def test_fleiss_refuses_unequal_panels(counts: list[tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match="same number"):
        a.fleiss_kappa(counts)


def test_lengths_must_be_equal() -> None:
    for measure in (a.agreement, a.cohen_kappa):
        with pytest.raises(ValueError, match="same items"):
            measure([1], [1, 2])
    with pytest.raises(ValueError, match="same items"):
        a.paired_difference([1], [])


def test_agreement_by_pair_counts_what_both_labelled() -> None:
    labels = {"ann": {"x": 1, "y": 0, "z": 1}, "bob": {"y": 0, "z": 0, "w": 1}, "cyd": {"v": 1}}
    found = a.by_pair(labels)
    assert found["ann", "bob"] == a.PairAgreement(2, 0.5, 0.0)
    assert found["ann", "cyd"] == a.PairAgreement(0, None, None)
    assert a.of_rater(labels, "bob").n == 2


def test_pairs_within_items() -> None:
    items = [["1", "1", "2"], ["="], ["1", "="]]
    assert a.pairwise_agreement(items) == 0.25
    assert a.hard_disagreement(items, "=") == 0.5
    assert a.pairwise_agreement([["1"]]) is None
    assert a.hard_disagreement([], "=") is None


def test_no_failures_in_n_checks() -> None:
    assert a.no_failure_bound(50) == pytest.approx(0.0582, abs=5e-5)
    assert a.no_failure_bound(0) is None


def test_paired_difference_is_reproducible_and_covers_its_mean() -> None:
    before, after = [0.0, 0.9, 0.1, 0.7, 0.3, 0.2], [1.0, 1.0, 0.0, 0.8, 0.9, 0.5]
    found = a.paired_difference(before, after, seed=7)
    assert found == a.paired_difference(before, after, seed=7)
    assert found.mean is not None
    assert math.isclose(found.mean, 2.0 / 6)
    assert found.interval is not None
    assert found.interval[0] <= found.mean <= found.interval[1]
    assert found.interval != a.paired_difference(before, after, seed=8, draws=50).interval


def test_a_difference_of_one_item_has_no_interval() -> None:
    assert a.paired_difference([0.0], [1.0]).interval is None
    assert a.paired_difference([], []).mean is None


def test_quantiles_lie_between_neighbours() -> None:
    assert a.quantile([0.0, 1.0], 0.25) == 0.25
    assert a.quantile([3.0], 0.9) == 3.0
    with pytest.raises(ValueError, match="no numbers"):
        a.quantile([], 0.5)
