"""How several gradings make one score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.grading_plans import Combine
from service.domain.verdicts import VerdictState


@dataclass(frozen=True, slots=True)
class Counted:
    """A grading as it counts for its run: its own verdict, or what a person put in its place."""

    state: VerdictState
    score: float | None
    max_score: float | None
    overridden: bool = False


def combined(rule: Combine, counted: Sequence[Counted]) -> tuple[float, float]:
    """Return score and max_score of gradings that all are ``graded``.

    Under ``mean`` and ``min`` they are a fraction and 1; a grading that could give no points says nothing there. Where no
    grading could give any, both are 0, under every rule. Raises ValueError if one has no score.
    """
    pairs = [_points(c) for c in counted]
    fractions = [score / most for score, most in pairs if most > 0]
    if rule is Combine.SUM or not fractions:
        return math.fsum(score for score, _ in pairs), math.fsum(most for _, most in pairs)
    return (min(fractions) if rule is Combine.MIN else math.fsum(fractions) / len(fractions)), 1.0


def _points(counted: Counted) -> tuple[float, float]:
    if counted.state is not VerdictState.GRADED or counted.score is None or counted.max_score is None:
        raise ValueError("only gradings with a score can be combined")
    return counted.score, counted.max_score
