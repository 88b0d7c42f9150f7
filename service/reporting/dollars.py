"""Dollars earned: what solved tasks are worth, in all and as it came in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import fsum


@dataclass(frozen=True, slots=True)
class Work:
    """One task of an agent."""

    price_usd: float | None
    solved: float
    """1 or 0; a share of its samples where there are several."""
    at: datetime | None = None
    """When it was done."""


@dataclass(frozen=True, slots=True)
class Dollars:
    priced: int
    """Tasks whose price is known: what every figure here rests on."""
    unpriced: int
    earned_usd: float
    possible_usd: float
    """Σ price of all priced tasks."""
    share: float | None
    mean_price_of_solved_usd: float | None
    solved_unpriced: float
    """Solved, and worth nobody knows what: in no figure here."""


def dollars(works: Iterable[Work]) -> Dollars:
    """Return Σ price of the solved (RLI section 3.3, Freelance section 5), its share and the mean price of a solved task.

    A task without a price is left out of money and counted, never taken as 0.
    """
    works = list(works)
    priced = [(w.price_usd, w.solved) for w in works if w.price_usd is not None]
    earned, possible = fsum(p * s for p, s in priced), fsum(p for p, _ in priced)
    solved = fsum(s for _, s in priced)
    return Dollars(
        priced=len(priced),
        unpriced=len(works) - len(priced),
        earned_usd=earned,
        possible_usd=possible,
        share=earned / possible if possible else None,
        mean_price_of_solved_usd=earned / solved if solved else None,
        solved_unpriced=fsum(w.solved for w in works if w.price_usd is None),
    )


@dataclass(frozen=True, slots=True)
class Point:
    at: datetime
    done: int
    """Tasks done so far, priced or not."""
    solved: float
    earned_usd: float


def cumulative(works: Iterable[Work]) -> list[Point]:
    """Return what had been earned after each task, in the order of time; tasks without a time are left out."""
    timed = sorted(((w.at, w) for w in works if w.at is not None), key=lambda pair: pair[0])
    points: list[Point] = []
    solved, earned = 0.0, 0.0
    for n, (at, work) in enumerate(timed, 1):
        solved += work.solved
        earned += work.solved * (work.price_usd or 0.0)
        points.append(Point(at, n, solved, earned))
    return points


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Return at most ``most`` (≥ 2) of the points, evenly spread, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    step = (len(points) - 1) / (most - 1)
    return [points[round(n * step)] for n in range(most)]
