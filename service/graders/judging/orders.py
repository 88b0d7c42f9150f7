"""Orders that vary by vote and can be had again: the first vote's is the given one, the second's its reverse."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def shuffled(items: Sequence[T], seed: str, n: int) -> list[T]:
    """Return the items in the order of vote ``n`` (from 1)."""
    if n <= 1:
        return list(items)
    if n == 2:
        return list(reversed(items))
    return [item for _, item in sorted(enumerate(items), key=lambda pair: drawn(seed, n, pair[0]))]


def drawn(*of: object) -> str:
    """Return 64 hex digits that follow from the values, and look random to whoever lacks one of them."""
    return hashlib.sha256("\0".join(map(str, of)).encode(errors="replace")).hexdigest()
