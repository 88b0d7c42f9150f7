"""Automation rate (RLI): the share of projects whose deliverable a reasonable client would accept."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.ratings import ACCEPTABLE
from service.reporting.success import wilson


@dataclass(frozen=True, slots=True)
class Automation:
    projects: int
    """Evaluated: the denominator. The published rates are k of 240, which is why it is always printed."""
    accepted: int
    rate: float | None
    interval: tuple[float, float] | None
    """95 % Wilson."""


def accepted(ratings: Sequence[int]) -> bool | None:
    """Return the majority of *accept* (2 and 3) over *reject* (1); null without ratings, and while it is tied.

    The majority is on the two, not on 1, 2 and 3: ratings 1, 2 and 3 accept (RLI, section B.4).
    """
    accepting = sum(rating >= ACCEPTABLE for rating in ratings)
    return None if 2 * accepting == len(ratings) else 2 * accepting > len(ratings)


def automation(verdicts: Sequence[bool]) -> Automation:
    """Return the rate over projects, one verdict each. A project without output is a rejection; give it as False."""
    n, yes = len(verdicts), sum(verdicts)
    return Automation(n, yes, yes / n if n else None, wilson(yes, n) if n else None)
