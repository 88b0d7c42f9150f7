"""What a call to a service will cost, known before it leaves: by the call, and by what its body asks for. Pure."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from service.domain.services import ServiceSpec, UnitPrice
from service.gateway.auth import Refused

_PLAIN = re.compile(r"[0-9]{1,10}(\.[0-9]{1,6})?", re.ASCII)
MOST_UNITS = Decimal(1_000_000_000)


@dataclass(frozen=True, slots=True)
class CallPrice:
    units: Decimal | None = None
    """Null: the service has no price per unit."""
    usd: Decimal | None = None
    """Null: not known, never free."""


def price_of(spec: ServiceSpec, body: bytes) -> CallPrice:
    """Return the price of a call. Without a body it asks for no units. Raises Refused (400) where the units that are
    paid for cannot be read."""
    per_call = None if spec.price_per_call_usd is None else Decimal(spec.price_per_call_usd)
    unit = spec.price_per_unit
    if unit is None:
        return CallPrice(None, per_call)
    units = _units(unit, body) if body else Decimal(0)
    return CallPrice(units, (per_call or Decimal(0)) + units * Decimal(unit.usd) / unit.per)


def _units(unit: UnitPrice, body: bytes) -> Decimal:
    asked = _object(unit, body)
    if unit.field not in asked:
        return Decimal(1 if unit.counts == "number" else 0)
    value = asked[unit.field]
    units = _length(value) if unit.counts == "characters" else _number(value)
    if units is None:
        raise _refused(
            f"{unit.field}: a text is required" if unit.counts == "characters" else f"{unit.field}: a number"
        )
    return units


def _object(unit: UnitPrice, body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _refused(f"the body must be a JSON object that names every field once: its {unit.field!r} is paid for")
    return cast("dict[str, Any]", value)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A repeated name reads differently elsewhere, and so costs something else there."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def _length(value: object) -> Decimal | None:
    return Decimal(len(value)) if isinstance(value, str) else None


def _number(value: object) -> Decimal | None:
    """Return what a number, or a text of one, says: some providers take seconds as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and not _PLAIN.fullmatch(value):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return round(number, 6) if number.is_finite() and 0 <= number <= MOST_UNITS else None


def _refused(detail: str) -> Refused:
    return Refused(400, "units_unreadable", detail)
