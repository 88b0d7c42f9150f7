"""How much work tasks make: medians of what runs took, beside those of a named reference (JobBench, Fig. 4)."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Measure:
    n: int
    """Runs for which it is known."""
    median: float | None
    ratio: float | None
    """Of the median to the reference's; null without one, and where that is 0."""


def measure(values: Iterable[float | None], reference: Iterable[float | None] | None = None) -> Measure:
    """Return the median over the values that are known, and its ratio to the reference's median."""
    known = [v for v in values if v is not None]
    other = [v for v in reference or () if v is not None]
    middle = median(known) if known else None
    base = median(other) if other else None
    return Measure(len(known), middle, middle / base if middle is not None and base else None)
