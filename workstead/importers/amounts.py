"""Amounts of money and of hours as sources write them: a number, or a range, which counts as its middle."""

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Literal, cast

MOST = Decimal(10) ** 15
_STEP = Decimal("0.000001")
_NUMBER = r"(\d{1,3}(?:,\d{3})+(?:\.\d{1,6})?|\d{1,15}(?:\.\d{1,6})?)"
_SIGN = {"money": r"(?:US)?\$?\s*", "hours": ""}
_UNIT = {"money": r"(?:USD)?", "hours": r"(?:hours?|hrs?|h)?"}
Kind = Literal["money", "hours"]


@dataclass(frozen=True, slots=True)
class Amount:
    """From ``low`` to ``high``; both are the same where the source has one number."""

    low: Decimal
    high: Decimal

    @property
    def middle(self) -> Decimal:
        return (self.low + self.high) / 2

    @property
    def is_range(self) -> bool:
        return self.low != self.high


def parse_amount(value: Any, kind: Kind) -> Amount:
    """Read ``200``, ``"$1,200.50"``, ``"200-500"``, ``[200, 500]`` or ``{"min": 200, "max": 500}``.

    Raises ValueError, in words, for anything else: a range without an end, say, or below 0.
    """
    if isinstance(value, str):
        return _of_text(value, kind)
    if isinstance(value, dict):
        ends = cast("dict[str, Any]", value)
        return _range(ends.get("min"), ends.get("max"))
    if isinstance(value, list):
        parts = cast("list[Any]", value)
        if len(parts) != 2:
            raise ValueError("a range has two ends")
        return _range(*parts)
    return _range(value, value)


def _of_text(text: str, kind: Kind) -> Amount:
    one = _SIGN[kind] + _NUMBER
    found = re.fullmatch(rf"\s*{one}(?:\s*(?:-|\u2013|\u2014|to)\s*{one})?\s*{_UNIT[kind]}\s*", text[:200])
    if found is None:
        raise ValueError("is no amount and no range with two ends")
    low, high = (Decimal(part.replace(",", "")) for part in (found[1], found[2] or found[1]))
    return _range(low, high)


def _range(low: Any, high: Any) -> Amount:
    ends: list[Decimal] = []
    for value in (low, high):
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise ValueError("must be a finite number")
        ends.append(Decimal(value))
    if not 0 <= ends[0] <= ends[1] < MOST:
        raise ValueError("is below 0, absurdly large, or a range that ends before it begins")
    return Amount(*ends)


def money(value: Decimal) -> str:
    """Return an amount as text with at most six decimals and no exponent."""
    text = f"{value.quantize(_STEP, ROUND_HALF_EVEN):f}"
    return text.rstrip("0").rstrip(".")
