"""Automation rate (RLI): the share of projects whose deliverable a reasonable client would accept."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.reporting.success import wilson


@dataclass(frozen=True, slots=True)
class Automation:
    projects: int
    """Evaluated: the denominator. The published rates are k of 240, which is why it is always printed."""
    accepted: int
    rate: float | None
    interval: tuple[float, float] | None
    """95 % Wilson."""


def automation(verdicts: Sequence[bool]) -> Automation:
    """Return the rate over projects, one verdict each. A project without output is a rejection; give it as False."""
    n, yes = len(verdicts), sum(verdicts)
    return Automation(n, yes, yes / n if n else None, wilson(yes, n) if n else None)
