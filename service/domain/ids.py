"""Prefixed, time-sortable, opaque identifiers (NEEDS D1)."""

import os
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford base 32


def _encode(value: int, length: int) -> str:
    digits: list[str] = []
    for _ in range(length):
        value, rest = divmod(value, 32)
        digits.append(_ALPHABET[rest])
    return "".join(reversed(digits))


def new_id(prefix: str) -> str:
    """Return ``<prefix>_<26 characters>``: 48 bits of milliseconds, then 80 random bits (ULID layout)."""
    millis = time.time_ns() // 1_000_000
    return f"{prefix}_{_encode(millis, 10)}{_encode(int.from_bytes(os.urandom(10)), 16)}"


def new_ids(prefix: str, n: int) -> list[str]:
    """Return ``n`` of them, each after the one before: what is made at once has an order, also within a millisecond."""
    return sorted(new_id(prefix) for _ in range(n))
