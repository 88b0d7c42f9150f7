"""Why it went wrong: shares of causes and of tags."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cause:
    name: str
    count: int
    share: float


def shares(causes: Iterable[str | None]) -> list[Cause]:
    """Return each cause's share of all that have one; one cause each. The most frequent come first, equals by name."""
    counts = Counter(cause for cause in causes if cause)
    return _ordered(counts, counts.total())


def tag_shares(items: Sequence[Sequence[str]]) -> list[Cause]:
    """Return for each tag the share of items that have it. An item may have several: shares may sum to more than 1.

    A tag that an item has twice counts once; items without tags are in the denominator.
    """
    return _ordered(Counter(tag for tags in items for tag in set(tags)), len(items))


def _ordered(counts: Counter[str], n: int) -> list[Cause]:
    return [Cause(name, count, count / n) for name, count in sorted(counts.items(), key=lambda i: (-i[1], i[0]))]
