"""Weighted rubric scores (JobBench) over tasks: macro, micro and the rate of rubrics, with a policy for missing tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

Missing = Literal["zero", "exclude", "refuse"]


@dataclass(frozen=True, slots=True)
class TaskScore:
    """Of one task, means over its samples."""

    fraction: float
    """Mean of earned / possible."""
    earned: float
    possible: float | None
    """Null: not known, since nothing of it was ever graded."""
    rubrics_passed: float = 0.0
    rubrics: float | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What a task would give, where nobody did it."""

    possible: float | None
    """Null: nobody knows, no run of it was ever graded."""
    rubrics: float | None = None


@dataclass(frozen=True, slots=True)
class RubricScores:
    tasks: int
    """Denominator of ``macro``."""
    done: int
    missing: int
    macro: float | None
    """Mean over tasks of the fraction: JobBench's paper, section 3.1."""
    micro: float | None
    """Σ earned / Σ possible: JobBench's site since April 2026."""
    rubric_pass_rate: float | None
    """Passed rubrics / rubrics, unweighted."""
    earned: float
    possible: float | None
    rubrics_passed: float
    rubrics: float | None


def rubric_scores(
    done: Mapping[str, TaskScore], expected: Mapping[str, Expected], missing: Missing = "zero"
) -> RubricScores:
    """Return the three figures over ``expected``, of which ``done`` has a score.

    Public leaderboards of JobBench have both aggregates, and both ways with missing tasks; none of it goes without saying.
    Under ``zero`` a missing task counts with score 0 in all three, and figures that need what it could have given are null
    where nobody knows that. Under ``refuse`` every figure is null while a task is missing. Tasks of ``done`` that are not
    expected are ignored. A possible score of 0 in sum leaves ``micro`` undefined.
    """
    there = [done[task] for task in expected if task in done]
    absent = [value for task, value in expected.items() if task not in done]
    counted = absent if missing == "zero" else []
    possible = _sum([*(s.possible for s in there), *(e.possible for e in counted)])
    rubrics = _sum([*(s.rubrics for s in there), *(e.rubrics for e in counted)])
    earned, passed = fsum(s.earned for s in there), fsum(s.rubrics_passed for s in there)
    tasks = len(there) + len(counted)
    refused = missing == "refuse" and bool(absent)
    return RubricScores(
        tasks=tasks,
        done=len(there),
        missing=len(absent),
        macro=fsum(s.fraction for s in there) / tasks if tasks and not refused else None,
        micro=None if refused else _ratio(earned, possible),
        rubric_pass_rate=None if refused else _ratio(passed, rubrics),
        earned=earned,
        possible=possible,
        rubrics_passed=passed,
        rubrics=rubrics,
    )


def mean_score(samples: Sequence[TaskScore]) -> TaskScore:
    """Return the means over the samples of one task; what one of them does not know is null. Raises ZeroDivisionError for none."""
    if len(samples) == 1:
        return samples[0]
    n = len(samples)
    possible, rubrics = _sum([s.possible for s in samples]), _sum([s.rubrics for s in samples])
    return TaskScore(
        fraction=fsum(s.fraction for s in samples) / n,
        earned=fsum(s.earned for s in samples) / n,
        possible=None if possible is None else possible / n,
        rubrics_passed=fsum(s.rubrics_passed for s in samples) / n,
        rubrics=None if rubrics is None else rubrics / n,
    )


def _ratio(top: float, bottom: float | None) -> float | None:
    return top / bottom if bottom else None


def _sum(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return fsum(known) if len(known) == len(values) else None
