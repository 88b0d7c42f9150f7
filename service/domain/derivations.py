"""Benchmarks derived from others: a rule chooses items; the rule is kept, and the same rule chooses the same (NEEDS A18)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Self

from pydantic import Field, model_validator

from service.domain.benchmarks import MAX_ITEMS, Policies, facet_values
from service.domain.evaluation_plans import Item, select
from service.domain.evaluations import Glob, Seed, TaskSelection
from service.domain.strata import place, spread
from service.domain.tasks import LABELS, FacetName, Money, Name, Strict

NONE = "(none)"
"""Stratum of the items that have no value of the facet."""
MOST_STRATA = 1_000
Version = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$")]


class PriceRange(Strict):
    """In US dollars, ends included. An item without such a price is not in it."""

    least_usd: Money | None = None
    most_usd: Money | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if (
            self.least_usd is not None
            and self.most_usd is not None
            and Decimal(self.least_usd) > Decimal(self.most_usd)
        ):
            raise ValueError("least_usd is not above most_usd")
        return self


class Sample(Strict):
    """Which of the items that fit are taken; null everywhere: all."""

    stratify: FacetName | None = None
    """Facet, also of annotations (``name@version``); a task with several values is in the stratum of all of them together."""
    per_stratum: int | None = Field(default=None, ge=1, le=MAX_ITEMS)
    """At most so many of each stratum."""
    total: int | None = Field(default=None, ge=1, le=MAX_ITEMS)
    proportional: bool = False
    """Of ``total``, each stratum gives its share (largest remainders); else strata give in turn, as many each while they can."""
    strata: list[Annotated[str, Field(max_length=300)]] = Field(default_factory=list[str], max_length=MOST_STRATA)
    """Values that are wanted: others are left out, and those that nothing fits are named. Empty: what there is."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.stratify is None and (self.per_stratum is not None or self.proportional or self.strata):
            raise ValueError("per_stratum, proportional and strata need a facet to stratify by")
        if self.proportional and (self.total is None or self.per_stratum is not None):
            raise ValueError("proportional goes with total, and without per_stratum")
        return self


class DeriveRule(Strict):
    """The same rule on the same benchmark chooses the same items."""

    include: list[Glob] = Field(default_factory=list[str], max_length=200)
    """Keys or task names, with * ? [ ]; empty: all."""
    exclude: list[Glob] = Field(default_factory=list[str], max_length=200)
    facets: dict[FacetName, list[str]] = Field(default_factory=dict[str, list[str]], max_length=32)
    """Facet, also of annotations (``name@version``) → values, one of which the task must have; numbers as text."""
    price: PriceRange | None = None
    disputed: bool = True
    sample: Sample = Field(default_factory=Sample)
    seed: Seed = 0

    def names(self) -> list[str]:
        """Return the facets that it goes by."""
        return [*self.facets, *([self.sample.stratify] if self.sample.stratify else [])]


class DeriveRequest(Strict):
    name: Name
    version: Version
    rule: DeriveRule = Field(default_factory=DeriveRule)
    policies: Policies | None = None
    """Null: those of the benchmark that it is derived from."""
    labels: LABELS = Field(default_factory=dict[str, str])
    dry_run: bool = False
    """Count only; nothing is made."""


@dataclass(frozen=True, slots=True)
class Stratum:
    name: str
    fitting: int
    taken: int


@dataclass(frozen=True, slots=True)
class Chosen:
    items: list[Item]
    """In the benchmark's order."""
    fitting: int
    """That the query lets through."""
    strata: list[Stratum]
    """By name; empty: no facet to stratify by."""
    empty: list[str]
    """Strata that were wanted and that nothing fits."""
    useless: list[str]
    """Patterns that match nothing."""


def choose(items: Sequence[Item], prices: Mapping[str, Decimal | None], rule: DeriveRule) -> Chosen:
    """Return what the rule chooses; ``prices``: key → US dollars. What is drawn, seed and keys alone decide."""
    wanted = TaskSelection(include=rule.include, exclude=rule.exclude, facets=rule.facets, disputed=rule.disputed)
    found = select(items, wanted, rule.seed)
    fit = [item for item in found.items if _in_range(prices.get(item.key), rule.price)]
    strata = _strata(fit, rule.sample)
    taken = _taken(strata, rule)
    keys = {item.key for item in taken}
    counts = Counter(_stratum(item, rule.sample) for item in taken)
    told = [Stratum(name, len(members), counts[name]) for name, members in sorted(strata.items())]
    return Chosen(
        [item for item in fit if item.key in keys],
        len(fit),
        told if rule.sample.stratify else [],
        [name for name in dict.fromkeys(rule.sample.strata) if not strata.get(name)],
        found.useless,
    )


def _strata(fit: Sequence[Item], sample: Sample) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in fit:
        name = _stratum(item, sample)
        if not sample.strata or name in sample.strata:
            found.setdefault(name, []).append(item)
    return found


def _taken(strata: Mapping[str, list[Item]], rule: DeriveRule) -> list[Item]:
    sample = rule.sample
    if sample.proportional and sample.total is not None:
        shares = _shares({name: len(members) for name, members in strata.items()}, sample.total, rule.seed)
        return [item for name, members in strata.items() for item in _drawn(members, shares[name], rule.seed)]
    capped = [item for m in strata.values() for item in _drawn(m, sample.per_stratum or len(m), rule.seed)]
    if sample.total is None:
        return capped
    return spread(
        capped, sample.total, f"derive {rule.seed}", key=lambda i: i.key, stratum=lambda i: _stratum(i, sample)
    )


def _drawn(members: Sequence[Item], n: int, seed: int) -> list[Item]:
    return sorted(members, key=lambda item: place(f"derive {seed}", item.key))[:n]


def _shares(sizes: Mapping[str, int], total: int, seed: int) -> dict[str, int]:
    """Return how many each stratum gives: its share rounded down, and one more for the largest remainders."""
    there = sum(sizes.values())
    wanted = min(total, there)
    exact = {name: Fraction(size * wanted, there) for name, size in sizes.items()}
    given = {name: int(share) for name, share in exact.items()}
    left = wanted - sum(given.values())
    by_remainder = sorted(exact, key=lambda name: (given[name] - exact[name], place(f"derive {seed}", "stratum", name)))
    return {name: n + (name in by_remainder[:left]) for name, n in given.items()}


def _stratum(item: Item, sample: Sample) -> str:
    if sample.stratify is None:
        return ""
    facet = item.facets.get(sample.stratify)
    values = set[str]() if facet is None else facet_values(facet)
    return " + ".join(sorted(values))[:300] if values else NONE


def _in_range(price: Decimal | None, wanted: PriceRange | None) -> bool:
    if wanted is None:
        return True
    if price is None:
        return False
    low, high = wanted.least_usd, wanted.most_usd
    return (low is None or price >= Decimal(low)) and (high is None or price <= Decimal(high))
