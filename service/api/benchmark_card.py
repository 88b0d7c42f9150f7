"""A benchmark's card as clients see it: what it is made of, on one page."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from service.api.benchmark_view import BenchmarkCounts, benchmark_view
from service.api.rendering import Digest, View
from service.domain.benchmark_cards import Distribution, Worth, bases, correlation, distribution
from service.domain.benchmarks import Grouping, Policies, Source
from service.store.benchmark_cards import Format
from service.store.rows import BenchmarkRow

MOST_FORMATS = 100


class CardSpread(View):
    """A distribution over the usable items that state a value; ``missing`` of them state none."""

    n: int
    missing: int
    total: float
    mean: float
    min: float
    p10: float
    p25: float
    p50: float
    p75: float
    p90: float
    max: float


class CardFormat(View):
    suffix: str | None
    """Of visible files, lower-case, without the dot; null: they have none."""
    tasks: int
    files: int
    size_bytes: int


class CardCorrelation(View):
    """Pearson's r of log price and log hours over the ``n`` items that state both."""

    n: int
    r: float | None


class Card(View):
    """What a benchmark is made of. Figures are of its usable items (ok and disputed)."""

    id: str
    name: str
    version: str
    digest: Digest
    notice: str
    counts: BenchmarkCounts
    facets: dict[str, Any]
    """Facet → ``{tasks, distinct, values}``."""
    overlays: dict[str, Any]
    """Accepted annotations, ``name@version`` → ``{id, digest, tasks, distinct, values}``; the newest 100."""
    formats: list[CardFormat]
    """The 100 that most tasks have."""
    price_usd: CardSpread | None
    """In US dollars; null: no item states a price."""
    price_basis: dict[str, int]
    """What prices rest on → items; also of prices without a rate to dollars."""
    human_hours: CardSpread | None
    price_and_hours: CardCorrelation
    policies: Policies
    groupings: list[Grouping]
    source: Source
    labels: dict[str, str]


def card_of(
    row: BenchmarkRow,
    counts: dict[str, int],
    overlays: dict[str, Any],
    worths: Sequence[Worth],
    formats: Sequence[Format],
) -> Card:
    shown = benchmark_view(row, counts)
    related = correlation(worths)
    return Card(
        id=shown.id,
        name=shown.name,
        version=shown.version,
        digest=shown.digest,
        notice=shown.head.notice,
        counts=shown.counts,
        facets=shown.facets,
        overlays=overlays,
        formats=[CardFormat(suffix=f.suffix, tasks=f.tasks, files=f.files, size_bytes=f.size_bytes) for f in formats],
        price_usd=_spread(distribution(_dollars(w.price_usd) for w in worths)),
        price_basis=bases(worths),
        human_hours=_spread(distribution(w.hours for w in worths)),
        price_and_hours=CardCorrelation(n=related.n, r=related.r),
        policies=shown.head.policies,
        groupings=shown.head.groupings,
        source=shown.head.source,
        labels=shown.labels,
    )


def _dollars(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _spread(found: Distribution | None) -> CardSpread | None:
    if found is None:
        return None
    ends = {"n": found.n, "missing": found.missing, "total": found.total, "mean": found.mean}
    return CardSpread.model_validate({**ends, "min": found.least, "max": found.most, **found.quantiles})
