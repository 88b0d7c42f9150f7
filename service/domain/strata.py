"""Samples that are spread over strata: the same for the same seed, whatever order the items come in."""

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def place(seed: object, *keys: object) -> str:
    """Return where something stands in the order of ``seed``: text to sort by, even over all keys."""
    return hashlib.sha256("\0".join(map(str, (seed, *keys))).encode()).hexdigest()


def spread(
    items: Iterable[T], n: int, seed: object, *, key: Callable[[T], str], stratum: Callable[[T], str]
) -> list[T]:
    """Return ``n`` of the items, or all: one of each stratum in turn, so that every stratum gives as many while it can.

    ``key`` names an item and differs between any two.
    """
    strata: dict[str, list[T]] = {}
    for item in sorted(items, key=lambda i: place(seed, key(i))):
        strata.setdefault(stratum(item), []).append(item)
    names = sorted(strata, key=lambda name: place(seed, "stratum", name))
    found: list[T] = []
    for turn in range(max(map(len, strata.values()), default=0)):
        found += [strata[name][turn] for name in names if turn < len(strata[name])]
    return found[:n]
