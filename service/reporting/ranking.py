"""How well scores put accepted jobs before rejected ones. None where a figure is undefined, never a number in its place."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.reporting.drawing import Bools, Floats, Indices, members_of, plain, ratio

TIE_DRAWS, BAND_DRAWS = 20, 2000


class Ranked:
    """Scores put in order once, for the AUC under any number of weightings of the same jobs."""

    def __init__(self, labels: Bools, scores: Floats) -> None:
        """Raises ValueError for unequal lengths or scores that are no numbers."""
        if labels.shape != scores.shape or not np.isfinite(scores).all():
            raise ValueError("every job needs a label and a score")
        self._order: Indices = np.argsort(scores, kind="stable")
        ordered = scores[self._order]
        self._accepted: Bools = labels[self._order]
        worth = ordered[self._accepted]
        self._below: Indices = np.searchsorted(ordered, worth, "left")
        self._up_to: Indices = np.searchsorted(ordered, worth, "right")

    def won_and_pairs(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return, per row of (draws, jobs), pairs that the accepted job wins (a tie is half of one), and all pairs."""
        drawn = weights[:, self._order]
        rejected = np.zeros((len(drawn), drawn.shape[1] + 1))
        np.cumsum(np.where(self._accepted, 0.0, drawn), axis=1, out=rejected[:, 1:])
        accepted = drawn[:, self._accepted]
        beaten = (rejected[:, self._below] + rejected[:, self._up_to]) / 2
        return (accepted * beaten).sum(axis=1), accepted.sum(axis=1) * rejected[:, -1]

    def auc(self, weights: Floats) -> Floats:
        """Return the AUC per row; nan where a class was not drawn."""
        return ratio(*self.won_and_pairs(weights))


def auc(labels: Bools, scores: Floats) -> float | None:
    """Return P(p⁺ > p⁻) + ½·P(p⁺ = p⁻) over pairs of an accepted and a rejected job; None where one class is absent.

    J. A. Hanley, B. J. McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC) curve",
    Radiology 143 (1982), 29-36. Raises ValueError for unequal lengths.
    """
    return plain(float(Ranked(labels, scores).auc(np.ones((1, len(labels))))[0]))


def within_auc(labels: Bools, scores: Floats, groups: Sequence[str]) -> float | None:
    """Return the AUC over pairs of the same group alone, all groups' pairs together; None without such a pair."""
    won = pairs = 0.0
    for mine in members_of(groups):
        w, p = Ranked(labels[mine], scores[mine]).won_and_pairs(np.ones((1, len(mine))))
        won, pairs = won + float(w[0]), pairs + float(p[0])
    return won / pairs if pairs else None


@dataclass(frozen=True, slots=True)
class Top:
    """Of the jobs with the highest scores."""

    size: int
    rate: float | None
    band: tuple[float, float] | None
    """2.5 and 97.5 percentiles of what as many jobs chosen at random have."""


def size_of(share: float, n: int) -> int:
    """Return how many jobs a share of ``n`` is: rounded half up, at least one of any."""
    return min(n, max(1, int(share * n + 0.5)))


def top(labels: Bools, scores: Floats, share: float, seed: int) -> Top:
    """Return the acceptance among the ``share`` (0 to 1) with the highest scores.

    Ties are broken at random, mean of 20 draws; the band is of 2 000 random selections of the same size, without replacement
    (so accepted ones among them are hypergeometric). All of one seed.
    """
    n = len(labels)
    if n == 0:
        return Top(0, None, None)
    size, rng = size_of(share, n), np.random.default_rng(seed)
    rates = [labels[np.lexsort((rng.random(n), -scores))[:size]].mean() for _ in range(TIE_DRAWS)]
    accepted = int(labels.sum())
    drawn = rng.hypergeometric(accepted, n - accepted, size, size=BAND_DRAWS) / size
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Top(size, float(np.mean(rates)), (float(low), float(high)))


def spearman(first: Floats, second: Floats) -> float | None:
    """Return the correlation of ranks, ties sharing their mean rank; None for fewer than two pairs or without variation.

    C. Spearman, "The proof and measurement of association between two things", Am. J. Psychology 15 (1904), 72-101.
    """
    if first.shape != second.shape:
        raise ValueError("the two are not of the same items")
    a, b = ranks(first), ranks(second)
    if len(a) < 2 or not a.std() or not b.std():
        return None
    return float(np.clip(np.corrcoef(a, b)[0, 1], -1.0, 1.0))


def ranks(values: Floats) -> Floats:
    """Return ranks from 1, equal values with the mean of their places."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") + 1) / 2
