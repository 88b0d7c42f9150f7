"""What a benchmark is made of, on one page (NEEDS A19): distributions of prices and of human time, and how they go together."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

QUANTILES = {"p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9}
LEAST_PAIRS = 3
"""With fewer a correlation says nothing: two points always lie on a line."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What a task states of its worth; null: it states none."""

    price_usd: Decimal | None
    basis: str | None
    hours: float | None


@dataclass(frozen=True, slots=True)
class Distribution:
    """Quantiles are interpolated between neighbours; sum and mean are of the ``n`` tasks that state a value."""

    n: int
    missing: int
    total: float
    mean: float
    least: float
    most: float
    quantiles: dict[str, float]


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r of the logarithms of price and hours, over the tasks that state both, above 0; null: it is not defined."""

    n: int
    r: float | None


def distribution(values: Iterable[float | None]) -> Distribution | None:
    """Return how values are spread; null where no task states one."""
    given = list(values)
    known = sorted(value for value in given if value is not None)
    if not known:
        return None
    return Distribution(
        n=len(known),
        missing=len(given) - len(known),
        total=math.fsum(known),
        mean=math.fsum(known) / len(known),
        least=known[0],
        most=known[-1],
        quantiles={name: _quantile(known, at) for name, at in QUANTILES.items()},
    )


def _quantile(known: Sequence[float], at: float) -> float:
    place = at * (len(known) - 1)
    low = math.floor(place)
    high = min(low + 1, len(known) - 1)
    return known[low] + (known[high] - known[low]) * (place - low)


def correlation(worths: Iterable[Worth]) -> Correlation:
    pairs = [
        (math.log(worth.price_usd), math.log(worth.hours))
        for worth in worths
        if worth.price_usd is not None and worth.hours is not None and worth.price_usd > 0 and worth.hours > 0
    ]
    prices, hours = [p for p, _ in pairs], [h for _, h in pairs]
    if len(pairs) < LEAST_PAIRS or len(set(prices)) == 1 or len(set(hours)) == 1:
        return Correlation(len(pairs), None)
    return Correlation(len(pairs), statistics.correlation(prices, hours))


def bases(worths: Iterable[Worth]) -> dict[str, int]:
    """Return how many prices rest on what (posted, midpoint, imputed …)."""
    return dict(sorted(Counter(worth.basis for worth in worths if worth.basis is not None).items()))
