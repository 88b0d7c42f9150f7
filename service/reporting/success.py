"""Success over a set of runs, with its denominator and what it left out (NEEDS D3; DESIGN.md section 2.3)."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

Z_95 = 1.959963984540054
"""97.5 % quantile of the normal distribution: two-sided 95 %."""


@dataclass(frozen=True, slots=True)
class Result:
    """One run, as far as a table looks at it."""

    outcome: str | None
    """Null while the run is not done."""
    cause: str | None
    score: float | None = None
    max_score: float | None = None
    overridden: bool = False
    """A person put another verdict in a grader's place."""


@dataclass(frozen=True, slots=True)
class Success:
    n: int
    """All runs of the set."""
    graded: int
    """The denominator of every figure below."""
    passed: int
    """Graded with full score."""
    pass_rate: float | None
    pass_interval: tuple[float, float] | None
    """95 % Wilson interval of the pass rate; runs of one task are not independent, so with several samples a task it is
    too narrow."""
    mean_fraction: float | None
    """Mean of score / max_score."""
    overridden: int
    """Of the graded, those whose score is a person's in a grader's place."""
    excluded: dict[str, int]
    """What is not in the denominator: ``<outcome or "unfinished">:<cause or "-">`` → runs."""


def success(results: Iterable[Result]) -> Success:
    """Return the figures. A run without a score is excluded and counted, never taken as 0."""
    fractions: list[float] = []
    excluded: Counter[str] = Counter()
    overridden = 0
    for r in results:
        if r.outcome == "graded" and r.score is not None and r.max_score:
            fractions.append(r.score / r.max_score)
            overridden += r.overridden
        else:
            excluded[f"{r.outcome or 'unfinished'}:{r.cause or '-'}"] += 1
    graded = len(fractions)
    passed = sum(f >= 1 for f in fractions)
    return Success(
        n=graded + excluded.total(),
        graded=graded,
        passed=passed,
        pass_rate=passed / graded if graded else None,
        pass_interval=wilson(passed, graded) if graded else None,
        mean_fraction=math.fsum(fractions) / graded if graded else None,
        overridden=overridden,
        excluded=dict(sorted(excluded.items())),
    )


def wilson(passed: int, n: int, z: float = Z_95) -> tuple[float, float]:
    """Return the score interval of a proportion.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927), 209-212:
    (p + z²/2n ± z·√(p(1-p)/n + z²/4n²)) / (1 + z²/n), with p = passed / n. Raises ValueError unless 0 ≤ passed ≤ n, n > 0.
    """
    if not 0 <= passed <= n or n == 0:
        raise ValueError(f"no proportion: {passed} of {n}")
    p, z2 = passed / n, z * z
    middle = p + z2 / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low, high = ((middle + sign * spread) / (1 + z2 / n) for sign in (-1, 1))
    return max(0.0, low), min(1.0, high)
