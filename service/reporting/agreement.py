"""Agreement of raters and judges, and the difference of two gradings of the same deliverables.

Labels may be anything that can be compared; None where a figure is undefined, never a number in its place.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

DRAWS = 2000


def agreement(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Return the share of equal labels at equal places; None without any. Raises ValueError for unequal lengths."""
    _same_length(first, second)
    return sum(a == b for a, b in zip(first, second, strict=True)) / len(first) if first else None


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Return κ of two raters of the same items, labels without an order.

    J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960), 37-46:
    (p_o - p_e) / (1 - p_e), with p_e from each rater's own shares. None without items, and where both gave one and the same
    label throughout (p_e = 1). Raises ValueError for unequal lengths.
    """
    observed = agreement(first, second)
    if observed is None:
        return None
    n, mine, others = len(first), Counter(first), Counter(second)
    expected = sum(mine[label] * others[label] for label in mine) / (n * n)
    return None if math.isclose(expected, 1.0) else (observed - expected) / (1 - expected)


def fleiss_kappa(counts: Sequence[Sequence[int]]) -> float | None:
    """Return κ of items that were each labelled by the same number of raters; ``counts[item][label]``.

    J. L. Fleiss, "Measuring nominal scale agreement among many raters", Psychological Bulletin 76 (1971), 378-382. None without
    items, with fewer than two raters, and where only one label was ever given. Raises ValueError for unequal numbers.
    """
    if not counts:
        return None
    raters, labels = sum(counts[0]), len(counts[0])
    if any(sum(row) != raters or len(row) != labels or min(row, default=0) < 0 for row in counts):
        raise ValueError("every item needs the same number of labels by the same number of raters")
    if raters < 2:
        return None
    within = sum(sum(c * (c - 1) for c in row) for row in counts) / (len(counts) * raters * (raters - 1))
    shares = [sum(row[label] for row in counts) / (len(counts) * raters) for label in range(labels)]
    expected = sum(share * share for share in shares)
    return None if math.isclose(expected, 1.0) else (within - expected) / (1 - expected)


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Of two raters, over what both labelled."""

    n: int
    agreement: float | None
    kappa: float | None


def by_pair(labels: Mapping[str, Mapping[str, Hashable]]) -> dict[tuple[str, str], PairAgreement]:
    """Return the agreement of every pair of raters; ``labels[rater][item]``. Pairs are in the order of their names."""
    found: dict[tuple[str, str], PairAgreement] = {}
    for first, second in combinations(sorted(labels), 2):
        both = sorted(labels[first].keys() & labels[second].keys())
        mine, others = [labels[first][item] for item in both], [labels[second][item] for item in both]
        found[first, second] = PairAgreement(len(both), agreement(mine, others), cohen_kappa(mine, others))
    return found


def of_rater(labels: Mapping[str, Mapping[str, Hashable]], rater: str) -> PairAgreement:
    """Return a rater's agreement with all others: one comparison for each other label of each of its items."""
    mine: list[Hashable] = []
    others: list[Hashable] = []
    for other in sorted(labels.keys() - {rater}):
        for item in sorted(labels[rater].keys() & labels[other].keys()):
            mine.append(labels[rater][item])
            others.append(labels[other][item])
    return PairAgreement(len(mine), agreement(mine, others), cohen_kappa(mine, others))


def pairwise_agreement(items: Iterable[Sequence[Hashable]]) -> float | None:
    """Return the share of equal labels over all pairs of labels of the same item; None without a pair."""
    pairs = [a == b for labels in items for a, b in combinations(labels, 2)]
    return sum(pairs) / len(pairs) if pairs else None


def hard_disagreement(items: Iterable[Sequence[Hashable]], neutral: Hashable) -> float | None:
    """Return the share of pairs of labels of one item that differ while neither is ``neutral``; None without a pair."""
    pairs = [a != b and neutral not in (a, b) for labels in items for a, b in combinations(labels, 2)]
    return sum(pairs) / len(pairs) if pairs else None


def no_failure_bound(n: int, confidence: float = 0.95) -> float | None:
    """Return the one-sided upper bound of a rate after ``n`` checks without a failure: ``1 - (1 - confidence)^(1/n)``."""
    return 1 - (1 - confidence) ** (1 / n) if n else None


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of ``after - before`` over the same items, with a percentile bootstrap interval over items."""

    n: int
    mean: float | None
    interval: tuple[float, float] | None
    """95 %; None for fewer than two items."""
    seed: int
    draws: int


def paired_difference(before: Sequence[float], after: Sequence[float], seed: int = 0, draws: int = DRAWS) -> Difference:
    """Return how much ``after`` lies above ``before``. Raises ValueError for unequal lengths.

    B. Efron, R. Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13: percentiles 2.5 and 97.5 of the means of
    resampled differences.
    """
    _same_length(before, after)
    steps = [b - a for a, b in zip(before, after, strict=True)]
    if not steps:
        return Difference(0, None, None, seed, draws)
    mean = math.fsum(steps) / len(steps)
    if len(steps) < 2:
        return Difference(1, mean, None, seed, draws)
    drawn = Random(seed)  # noqa: S311 - a reproducible resampling, not a secret
    means = sorted(math.fsum(drawn.choices(steps, k=len(steps))) / len(steps) for _ in range(draws))
    return Difference(len(steps), mean, (quantile(means, 0.025), quantile(means, 0.975)), seed, draws)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the quantile of ordered numbers, straight between neighbours. Raises ValueError without numbers."""
    if not ordered:
        raise ValueError("no numbers")
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _same_length(first: Sequence[object], second: Sequence[object]) -> None:
    if len(first) != len(second):
        raise ValueError("the two are not of the same items")
