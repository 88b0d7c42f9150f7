"""Two gradings of the same deliverables side by side: how far they differ, and whether they agree on who passed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.reporting.agreement import Difference, agreement, cohen_kappa, paired_difference


@dataclass(frozen=True, slots=True)
class Comparison:
    """Over the deliverables that have a score on both sides; scores are fractions of what could be had."""

    n: int
    left_out: int
    """Without a score on one side or both."""
    before_mean: float | None
    after_mean: float | None
    difference: Difference
    """After less before."""
    agreement: float | None
    """Share on which both say passed, or both not; passed is full score."""
    kappa: float | None
    """Cohen's, of the same; null where it is not defined."""
    flips_up: tuple[str, ...]
    """Passed now, and did not before."""
    flips_down: tuple[str, ...]


def compare(pairs: Sequence[tuple[str, float | None, float | None]], seed: int) -> Comparison:
    """Compare ``(id, before, after)``; ``seed`` is of the bootstrap."""
    both = [(id_, before, after) for id_, before, after in pairs if before is not None and after is not None]
    before, after = [b for _, b, _ in both], [a for _, _, a in both]
    passed = [(id_, b >= 1, a >= 1) for id_, b, a in both]
    first, second = [b for _, b, _ in passed], [a for _, _, a in passed]
    return Comparison(
        n=len(both),
        left_out=len(pairs) - len(both),
        before_mean=_mean(before),
        after_mean=_mean(after),
        difference=paired_difference(before, after, seed),
        agreement=agreement(first, second),
        kappa=cohen_kappa(first, second),
        flips_up=tuple(id_ for id_, b, a in passed if a and not b),
        flips_down=tuple(id_ for id_, b, a in passed if b and not a),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
