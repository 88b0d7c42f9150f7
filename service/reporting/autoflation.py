"""Autoflation (RLI): by how much AI has made a fixed basket of projects cheaper, as models came out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from math import fsum
from operator import itemgetter


@dataclass(frozen=True, slots=True)
class AcceptedRun:
    project: str
    released_on: date | None
    """Of the model; null: not known."""
    cost_usd: float | None
    """Of the attempt that was accepted; null: not known."""


@dataclass(frozen=True, slots=True)
class Step:
    on: date
    reduction_usd: float
    autoflation: float | None
    """Fraction of what people would have been paid; null for an empty basket."""
    projects: int
    """That have become cheaper."""


@dataclass(frozen=True, slots=True)
class Autoflation:
    steps: list[Step]
    """One per day on which a model came out that had a run accepted."""
    basket: int
    basket_usd: float
    unpriced: int
    """Projects without a price: not in the basket."""
    undated: int
    """Accepted runs in the basket whose model's release is not known."""
    uncosted: int
    """Accepted runs in the basket whose cost is not known."""


def autoflation(prices: Mapping[str, float | None], runs: Iterable[AcceptedRun]) -> Autoflation:
    """Return the curve. RLI, section A.2: Σ max(0, h - c*(t)) / Σ h over projects with a known price h.

    c*(t) is the least cost of an accepted run by a model that was out at t. A project counts 0 as long as nobody had it
    accepted, and where AI costs more than people.
    """
    basket = {project: price for project, price in prices.items() if price is not None}
    inside = [r for r in runs if r.project in basket]
    known = sorted(
        (r.released_on, r.project, r.cost_usd) for r in inside if r.released_on is not None and r.cost_usd is not None
    )
    total = fsum(basket.values())
    best: dict[str, float] = {}
    steps: dict[date, Step] = {}
    for on, day in groupby(known, key=itemgetter(0)):
        for _, project, cost in day:
            best[project] = min(cost, best.get(project, cost))
        saved = [basket[p] - c for p, c in best.items() if c < basket[p]]
        reduction = fsum(saved)
        steps[on] = Step(on, reduction, reduction / total if total else None, len(saved))
    return Autoflation(
        steps=list(steps.values()),
        basket=len(basket),
        basket_usd=total,
        unpriced=len(prices) - len(basket),
        undated=sum(r.released_on is None for r in inside),
        uncosted=sum(r.cost_usd is None for r in inside),
    )
