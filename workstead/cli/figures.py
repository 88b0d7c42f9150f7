"""Figures over runs, with their denominator and what it leaves out. The same rules as the service's own reports."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workstead.models import Run

OVERRIDDEN = "overridden"
"""Flag of such a run."""
Z_95 = 1.959963984540054
"""97.5 % quantile of the normal distribution: two-sided 95 %."""


@dataclass(frozen=True, slots=True)
class Figures:
    n: int
    graded: int
    """The denominator of every figure below."""
    passed: int
    """Graded with full marks."""
    interval: tuple[float, float] | None
    """95 % Wilson interval of the pass rate; samples of one task are not independent, so with several it is too narrow."""
    mean: float | None
    """Mean of score / max_score."""
    left_out: dict[str, int]
    """``outcome (cause)`` → runs without a score."""
    overridden: int = 0
    """Of the graded, those whose score is a person's in a grader's place."""

    @property
    def pass_rate(self) -> float | None:
        return self.passed / self.graded if self.graded else None

    def as_json(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "graded": self.graded,
            "passed": self.passed,
            "pass_rate": self.pass_rate,
            "pass_interval": self.interval,
            "mean_fraction": self.mean,
            "left_out": self.left_out,
            "overridden": self.overridden,
        }


def figures(runs: Iterable[Run]) -> Figures:
    """Return the figures. A run without a score is left out and counted, never taken as 0."""
    fractions: list[float] = []
    left_out: Counter[str] = Counter()
    overridden = 0
    for run in runs:
        if run.outcome == "graded" and run.verdict.score is not None and run.verdict.max_score:
            fractions.append(run.verdict.score / run.verdict.max_score)
            overridden += OVERRIDDEN in run.flags
        else:
            left_out[f"{run.outcome or run.phase} ({run.ended_because or 'not ended'})"] += 1
    graded, passed = len(fractions), sum(f >= 1 for f in fractions)
    return Figures(
        n=graded + left_out.total(),
        graded=graded,
        passed=passed,
        interval=wilson(passed, graded) if graded else None,
        mean=math.fsum(fractions) / graded if graded else None,
        left_out=dict(sorted(left_out.items())),
        overridden=overridden,
    )


def by_agent(runs: Iterable[Run]) -> dict[str, Figures]:
    """Return the figures of each agent, by label."""
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.agent.label].append(run)
    return {label: figures(own) for label, own in sorted(groups.items())}


def wilson(passed: int, n: int) -> tuple[float, float]:
    """Return the 95 % score interval of ``passed`` of ``n`` > 0 (E. B. Wilson 1927)."""
    p, z2 = passed / n, Z_95 * Z_95
    middle = p + z2 / (2 * n)
    spread = Z_95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low, high = ((middle + sign * spread) / (1 + z2 / n) for sign in (-1, 1))
    return max(0.0, low), min(1.0, high)
