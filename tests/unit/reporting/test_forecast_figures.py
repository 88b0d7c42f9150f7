"""Figures of forecasts: golden vectors of the facts, other libraries' figures, and edges."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as untyped_stats
from sklearn import linear_model as untyped_linear
from sklearn import metrics as untyped_metrics

from service.reporting import baselines, calibration, ceiling, ranking, residuals, weighting
from service.reporting.drawing import weights
from service.reporting.forecast_auc import drawn_aucs, on_common
from service.reporting.logistic import fit

STATS: Any = untyped_stats
LINEAR: Any = untyped_linear
METRICS: Any = untyped_metrics
Y = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 0], dtype=np.bool_)
P = np.array([0.9, 0.8, 0.7, 0.7, 0.7, 0.35, 0.35, 0.1, 1.0, 0.0])
JOBS = st.integers(2, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.booleans(), min_size=n, max_size=n), st.lists(st.integers(0, 5), min_size=n, max_size=n)
    )
)


def test_the_golden_vectors() -> None:
    assert ranking.auc(Y, P) == pytest.approx(0.78)
    assert calibration.ece(Y, P) == pytest.approx(0.14)
    said = calibration.claim(Y, P, seed=1)
    assert said.overclaim.value == pytest.approx(1.12)
    assert ranking.top(Y, P, 0.2, seed=3).rate == 1.0


@given(JOBS)
@settings(max_examples=60, deadline=None)
def test_auc_is_scikit_learns(job: tuple[list[bool], list[int]]) -> None:
    labels, scores = np.array(job[0]), np.array(job[1], dtype=np.float64)
    found = ranking.auc(labels, scores)
    if labels.all() or not labels.any():
        assert found is None
    else:
        assert found == pytest.approx(METRICS.roc_auc_score(labels, scores))


@given(JOBS)
@settings(max_examples=60, deadline=None)
def test_spearman_is_scipys(job: tuple[list[bool], list[int]]) -> None:
    first, second = np.array(job[0], dtype=np.float64), np.array(job[1], dtype=np.float64)
    found = ranking.spearman(first, second)
    if len(set(job[0])) < 2 or len(set(job[1])) < 2:
        assert found is None
    else:
        assert found == pytest.approx(STATS.spearmanr(first, second).statistic)


def test_weights_are_whole_resamples_and_the_same_again() -> None:
    pieces = [*weights(7, 300, seed=5)]
    assert [len(piece) for piece in pieces] == [250, 50]
    assert all((piece.sum(axis=1) == 7).all() for piece in pieces)
    assert all((a == b).all() for a, b in zip(pieces, weights(7, 300, seed=5), strict=True))
    within = next(weights(5, 40, seed=1, groups=["a", "b", "a", "b", "b"]))
    assert (within[:, [0, 2]].sum(axis=1) == 2).all()


def test_a_weighted_auc_is_that_of_jobs_repeated() -> None:
    drawn = next(weights(len(Y), 50, seed=2))
    for row, found in zip(drawn, ranking.Ranked(Y, P).auc(drawn), strict=True):
        again = np.repeat(np.arange(len(Y)), row.astype(int))
        expected = ranking.auc(Y[again], P[again])
        assert math.isnan(found) if expected is None else found == pytest.approx(expected)


def test_paired_differences_see_the_same_jobs() -> None:
    rng = np.random.default_rng(0)
    labels = rng.random(200) < 0.5
    good = labels * 0.5 + rng.random(200)
    found = drawn_aucs(labels, {"good": good, "same": good, "noise": rng.random(200)}, seed=1, draws=400)
    assert found.difference("good", "same").interval == (0.0, 0.0)
    step = found.difference("good", "noise")
    assert step.interval is not None
    assert step.interval[0] > 0
    alone = found.estimate("good")
    assert alone.interval is not None
    assert alone.value is not None
    assert alone.interval[0] < alone.value < alone.interval[1]
    assert found.mean(["good", "same"]).value == pytest.approx(alone.value)


def test_an_excluded_forecast_leaves_its_job_out_of_its_own_figures() -> None:
    scores = P.copy()
    scores[1] = np.nan
    found = drawn_aucs(Y, {"a": P, "b": scores}, seed=1, draws=50)
    assert (found.n["a"], found.n["b"]) == (10, 9)
    assert found.values["b"] == pytest.approx(ranking.auc(np.delete(Y, 1), np.delete(P, 1)))
    labels, common = on_common(Y, {"a": P, "b": scores})
    assert len(labels) == len(common["a"]) == 9


def test_an_auc_of_one_class_is_undefined() -> None:
    assert ranking.auc(np.ones(3, dtype=np.bool_), np.array([0.1, 0.2, 0.3])) is None
    found = drawn_aucs(np.ones(3, dtype=np.bool_), {"a": np.array([0.1, 0.2, 0.3])}, seed=0, draws=10)
    assert (found.estimate("a").value, found.estimate("a").interval) == (None, None)
    with pytest.raises(ValueError, match="label and a score"):
        ranking.auc(Y, P[:3])
    with pytest.raises(ValueError, match="label and a score"):
        ranking.auc(Y, np.where(Y, np.nan, P))


def test_within_groups_only_pairs_of_one_group_count() -> None:
    groups = ["a", "a", "b", "b"]
    labels, scores = np.array([True, False, True, False]), np.array([0.2, 0.1, 0.9, 0.8])
    assert ranking.auc(labels, scores) == pytest.approx(0.75)
    assert ranking.within_auc(labels, scores, groups) == 1.0
    assert ranking.within_auc(labels, scores, ["a", "b", "c", "d"]) is None


def test_ties_at_the_top_are_broken_at_random_by_the_seed() -> None:
    labels, scores = np.array([True, False] * 50), np.zeros(100)
    found = ranking.top(labels, scores, 0.1, seed=4)
    assert found == ranking.top(labels, scores, 0.1, seed=4)
    assert found.rate is not None
    assert found.band is not None
    assert found.size == 10
    assert 0.3 < found.rate < 0.7
    assert found.band[0] < 0.5 < found.band[1]
    assert ranking.top(labels[:0], scores[:0], 0.1, seed=4).rate is None
    assert ranking.size_of(0.5, 1494) == 747


def test_one_belongs_to_the_last_bin() -> None:
    assert calibration.bin_of(np.array([0.0, 0.1, 0.95, 1.0])).tolist() == [0, 1, 9, 9]
    assert calibration.ece(np.array([], dtype=np.bool_), np.array([])) is None
    none_accepted = calibration.claim(np.zeros(4, dtype=np.bool_), np.full(4, 0.5), seed=0, draws=20)
    assert (none_accepted.overclaim.value, none_accepted.mean.value, none_accepted.rate) == (None, 0.5, 0.0)


def test_platt_makes_an_overclaim_good() -> None:
    rng = np.random.default_rng(3)
    true = rng.random(1000)
    labels = rng.random(1000) < true
    bold = 1 / (1 + np.exp(-(np.log(true / (1 - true)) * 3 + 2)))
    found = calibration.platt(labels, bold, seed=1)
    before = calibration.ece(labels, bold)
    assert found.splits == 20
    assert found.ece is not None
    assert found.accuracy is not None
    assert before is not None
    assert found.ece < before / 2
    assert found.accuracy > 0.7
    assert found == calibration.platt(labels, bold, seed=1)
    assert calibration.platt(labels[:100], bold[:100], seed=1).ece is None
    assert calibration.platt(np.ones(200, dtype=np.bool_), bold[:200], seed=1).splits == 0


def test_a_regression_is_scikit_learns_and_says_when_it_cannot() -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((400, 2))
    labels = rng.random(400) < 1 / (1 + np.exp(-(0.5 + x @ np.array([1.0, 0.0]))))
    mine = fit(x, labels)
    theirs = LINEAR.LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, labels)
    assert mine.beta == pytest.approx([theirs.intercept_[0], *theirs.coef_[0]], abs=1e-4)
    constant, first, second = baselines.regression({"a": x[:, 0], "b": x[:, 1]}, labels)
    assert [constant.name, first.name, second.name] == ["constant", "a", "b"]
    assert first.p is not None
    assert second.p is not None
    assert first.p < 1e-6 < second.p
    assert first.error is not None
    assert first.beta is not None
    assert first.p == pytest.approx(2 * STATS.norm.sf(abs(first.beta / first.error)))
    apart = fit(x[:, :1], x[:, 0] > 0)
    assert not apart.converged
    assert apart.p_values() == [None, None]
    twice = fit(np.column_stack([x[:, 0], x[:, 0]]), labels)
    assert twice.errors is None
    assert fit(x[:, :1], x[:, 0] > 0, ridge=1.0).converged


def test_a_one_by_two_table_has_the_known_error_of_its_log_odds() -> None:
    groups = np.array([0.0] * 30 + [1.0] * 20)
    labels = np.array([True] * 10 + [False] * 20 + [True] * 15 + [False] * 5)
    _, term = baselines.regression({"group": groups}, labels)
    assert term.beta == pytest.approx(math.log((15 / 5) / (10 / 20)))
    assert term.error == pytest.approx(math.sqrt(1 / 10 + 1 / 20 + 1 / 15 + 1 / 5))


def test_cross_fitting_knows_nothing_of_a_job_of_its_own() -> None:
    rng = np.random.default_rng(1)
    labels = rng.random(300) < 0.5
    chance = baselines.cross_fitted(baselines.noise(300, 40, seed=2), labels, seed=3)
    found = ranking.auc(labels, chance)
    assert found is not None
    assert abs(found - 0.5) < 0.12
    told = baselines.cross_fitted({"it": labels.astype(np.float64)}, labels, seed=3)
    assert ranking.auc(labels, told) == 1.0
    assert (told == baselines.cross_fitted({"it": labels.astype(np.float64)}, labels, seed=3)).all()
    one_class = baselines.cross_fitted({"it": labels.astype(np.float64)}, np.ones(300, dtype=np.bool_), seed=3)
    assert (one_class == 1.0).all()
    with pytest.raises(ValueError, match="folds"):
        baselines.cross_fitted({"it": np.zeros(3)}, labels[:3], seed=0)


def test_columns_of_categories_numbers_and_forecasters() -> None:
    columns = baselines.dummies(["x", "y", "x", None], "category")
    assert {name: one.tolist() for name, one in columns.items()} == {
        "category=unknown": [0, 0, 0, 1], "category=y": [0, 1, 0, 0],
    }  # fmt: skip
    known = baselines.numbers([1.0, None, 3.0], "price")
    assert known["price"].tolist() == [1.0, 2.0, 3.0]
    assert known["price unknown"].tolist() == [0.0, 1.0, 0.0]
    mean = baselines.averaged({"a": np.array([0.2, np.nan, np.nan]), "b": np.array([0.4, 0.5, np.nan])})
    assert mean[:2].tolist() == pytest.approx([0.3, 0.5])
    assert math.isnan(mean[2])
    points = baselines.hand_rule({"context": np.array([1.0, 5.0])}, {"context": (-1.0, lambda x: x >= 4)})
    assert points.tolist() == [0.0, -1.0]
    assert len(baselines.embeddings(np.ones((4, 3)))) == 3


def test_stacking_is_no_worse_than_its_best_part() -> None:
    rng = np.random.default_rng(5)
    labels = rng.random(500) < 0.5
    good = np.clip(0.3 + 0.3 * labels + 0.2 * rng.random(500), 0, 1)
    both = baselines.stacked({"good": good, "noise": rng.random(500)}, labels, seed=1)
    mine, best = ranking.auc(labels, both), ranking.auc(labels, good)
    assert mine is not None
    assert best is not None
    assert mine > best - 0.02


def test_dollars_and_shares_move_a_rate() -> None:
    labels, worth = np.array([True, False, True, False]), np.array([100.0, 300.0, np.nan, 0.0])
    found = weighting.weighted_rate(labels, worth, seed=1, draws=50)
    assert (found.n, found.value) == (3, 0.25)
    assert weighting.weighted_rate(labels, np.full(4, np.nan), seed=1, draws=50).value is None
    with pytest.raises(ValueError, match="less than nothing"):
        weighting.weighted_rate(labels, np.array([-1.0, 1, 1, 1]), seed=1)
    groups = ["a", "a", "a", "b"]
    moved = weighting.reweighted_rate(labels, groups, {"a": 0.25, "b": 0.25, "c": 0.5}, seed=1, draws=50)
    assert moved.missing == {"c": 0.5}
    assert moved.estimate.value == pytest.approx(0.5 * 2 / 3)
    assert weighting.rate(labels, seed=1, draws=20).value == 0.5


def test_a_rate_within_categories_varies_less() -> None:
    groups = ["a"] * 50 + ["b"] * 50
    labels = np.array([True] * 48 + [False] * 2 + [False] * 48 + [True] * 2)
    wide, narrow = weighting.rate(labels, 1, 1000), weighting.rate(labels, 1, 1000, groups)
    assert wide.interval is not None
    assert narrow.interval is not None
    assert narrow.interval[1] - narrow.interval[0] < 0.6 * (wide.interval[1] - wide.interval[0])


def test_an_interaction_is_a_difference_of_gains() -> None:
    base = np.array([False] * 10 + [True] * 10)
    other = np.array([True] * 8 + [False] * 2 + [True] * 10)
    special = np.array([True] * 10 + [False] * 10)
    gain, rest, difference = weighting.interaction(base, other, special, seed=1)
    assert (gain.value, rest.value, difference.value) == (0.8, 0.0, 0.8)
    assert difference.interval is not None
    assert difference.interval[0] > 0.4
    assert (gain.n, rest.n, difference.n) == (10, 10, 20)
    alone = weighting.interaction(base, other, np.ones(20, dtype=np.bool_), seed=1, draws=20)
    assert (alone[1].value, alone[2].value) == (None, None)


def test_what_is_left_of_a_table_has_no_margins() -> None:
    rng = np.random.default_rng(0)
    left = residuals.double_centred(rng.random((4, 3)))
    assert left.sum(axis=0) == pytest.approx(np.zeros(3))
    assert left.sum(axis=1) == pytest.approx(np.zeros(4))
    assert residuals.double_centred(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist() == [[0.5, -0.5], [-0.5, 0.5]]


def test_a_family_that_knows_its_own_judge_is_seen() -> None:
    rng = np.random.default_rng(2)
    true = rng.random(400)
    labels = {name: (true + rng.normal(0, 0.3, 400)) > 0.5 for name in ("judge-a", "judge-b")}
    scores = {"a": true + 0.4 * labels["judge-a"], "b": true + 0.4 * labels["judge-b"]}
    families = {"a": "A", "judge-a": "A", "b": "B", "judge-b": "B"}
    found = residuals.own_family(labels, scores, families, seed=1, draws=60)
    assert found.cells == 2
    assert found.interval is not None
    assert found.interval[0] > 0
    nobody = residuals.own_family(labels, scores, {}, seed=1)
    assert (nobody.own, nobody.cells) == (None, 0)


def test_a_beta_binomial_is_found_again() -> None:
    rng = np.random.default_rng(4)
    chances = rng.beta(2.0, 3.0, 4000)
    found = ceiling.fit([(int(k), 3) for k in rng.binomial(3, chances)])
    assert found is not None
    assert found.mean == pytest.approx(0.4, abs=0.02)
    assert found.alike == pytest.approx(1 / 6, abs=0.03)
    assert ceiling.fit([(1, 1), (0, 1)]) is None
    assert ceiling.fit([(3, 3), (3, 3)]) is None
    with pytest.raises(ValueError, match="attempts"):
        ceiling.fit([(4, 3)])


def test_jobs_of_one_chance_cannot_be_told_apart() -> None:
    assert ceiling.oracle_auc(ceiling.BetaBinomial(5e5, 5e5, 10)) == pytest.approx(0.5, abs=0.01)
    assert ceiling.oracle_auc(ceiling.BetaBinomial(0.01, 0.01, 10)) > 0.99
    by_drawing = ceiling.BetaBinomial(1.0, 1.0, 10)  # X ~ Beta(2, 1), Y ~ Beta(1, 2): P(X > Y) = 5/6
    assert ceiling.oracle_auc(by_drawing) == pytest.approx(5 / 6, abs=1e-4)
    order = [ceiling.oracle_auc(ceiling.BetaBinomial(s, s, 1)) for s in (4.0, 1.0, 0.25)]
    assert all(a < b for a, b in pairwise(order))


def test_two_attempts_forecast_the_third() -> None:
    attempts = [[True, True, True], [True, False, True], [False, False, False], [False, True, False], [True, True]]
    assert ceiling.ceiling(attempts) == pytest.approx(0.875)
    assert ceiling.ceiling([[True, True]]) is None
