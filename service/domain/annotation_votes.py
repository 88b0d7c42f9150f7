"""Votes become one value: majority, median, or a tie that is named; and how far the votes agree."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from service.domain.annotations import Labels, Number, ShortText, YesNo
from service.domain.tasks import Facet


@dataclass(frozen=True, slots=True)
class Settled:
    """What a set says of one item."""

    value: Facet | None
    """Null: no vote was answered, or a tie."""
    votes: int
    """Answered ones."""
    agreeing: int
    """Of these, votes for the value itself."""
    tied: list[str]
    """Values (of several labels: labels) with as many votes as each other; empty: no tie."""
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of the votes of models."""

    items: int
    """That all votes were answered on: κ is of these."""
    votes: int
    """Of each."""
    kappa: float | None
    """Fleiss; null: it is not defined."""
    unanimous: int
    tied: dict[str, list[str]]
    """Target → values; these have no value."""


def settle(shape: Labels | Number | YesNo | ShortText, votes: Sequence[Facet], person: Facet | None) -> Settled:
    """Return what the votes say; a person's word goes before them.

    One label, yes or no and text: the value with most votes. Several labels: those with more than half of the votes.
    Numbers: the median; of an even number of votes the mean of the middle two, and where only whole numbers may be, and it
    is none, a tie of these two.
    """
    if person is not None:
        return Settled(person, len(votes), sum(_same(one, person) for one in votes), [], by_person=True)
    if not votes:
        return Settled(None, 0, 0, [])
    if isinstance(shape, Labels) and shape.several:
        value, tied = _each(shape, cast("Sequence[list[str]]", votes))
    elif isinstance(shape, Number):
        value, tied = _median(shape, cast("Sequence[float]", votes))
    else:
        value, tied = _most(votes)
    return Settled(value, len(votes), 0 if value is None else sum(_same(one, value) for one in votes), tied)


def as_text(value: Facet) -> str:
    """Return a value's name among others of its set."""
    if isinstance(value, list):
        return "; ".join(value)
    return value if isinstance(value, str) else f"{value:g}"


def table(items: Mapping[str, Sequence[Facet]], raters: int) -> list[list[int]]:
    """Return ``counts[item][value]`` of the items that all of ``raters`` votes were answered on: what Fleiss' κ goes by."""
    whole = [[as_text(value) for value in votes] for _, votes in sorted(items.items()) if len(votes) == raters]
    names = sorted({name for votes in whole for name in votes})
    return [[votes.count(name) for name in names] for votes in whole]


def _same(one: Facet, other: Facet) -> bool:
    return as_text(one) == as_text(other)


def _most(votes: Sequence[Facet]) -> tuple[Facet | None, list[str]]:
    counts = Counter(map(as_text, votes))
    top = max(counts.values())
    first = sorted(name for name, n in counts.items() if n == top)
    return (None, first) if len(first) > 1 else (first[0], [])


def _each(shape: Labels, votes: Sequence[list[str]]) -> tuple[Facet | None, list[str]]:
    counts = Counter(label for one in votes for label in one)
    tied = [label for label in shape.labels if counts[label] * 2 == len(votes)]
    return (None, tied) if tied else ([label for label in shape.labels if counts[label] * 2 > len(votes)], [])


def _median(shape: Number, votes: Sequence[float]) -> tuple[Facet | None, list[str]]:
    middle = statistics.median(votes)
    if shape.whole and not float(middle).is_integer():
        return None, [as_text(statistics.median_low(votes)), as_text(statistics.median_high(votes))]
    return float(middle), []
