"""What an item is worth. A price that contradicts itself is left out and said so; the item stays usable."""

from decimal import Decimal
from typing import Annotated, Any, cast

from pydantic import Field, ValidationError, field_validator

from workstead.importers.amounts import MOST, money
from workstead.importers.drafts import Draft
from workstead.importers.fields import Loose, Number, complaints

Amount = Annotated[Number, Field(ge=0, lt=MOST)]


class InDollars(Loose):
    avg_price: Amount | None = None


class Pricing(Loose):
    min_price: Amount | None = None
    max_price: Amount | None = None
    avg_price: Amount | None = None
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    rate_type: str | None = None
    usd_conversion: InDollars | None = None

    @field_validator("rate_type")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value not in (None, "fixed", "hourly"):
            raise ValueError("must be 'fixed' or 'hourly'")
        return value


def posted(price: Any, draft: Draft) -> dict[str, Any] | None:
    """Return the price of shape A, a number of US dollars."""
    if price is None:
        draft.note("no_price", "/price")
        return None
    try:
        amount = money(_Posted.model_validate({"price": price}).price)
    except ValidationError as error:
        _note(error, "", draft)
        return None
    return {"amount": amount, "currency": "USD", "usd": amount, "basis": "posted"}


class _Posted(Loose):
    price: Amount


def reported(pricing: Any, draft: Draft) -> dict[str, Any] | None:
    """Return the price of shape B: its average, else the middle of its range."""
    where = "/metadata/pricing"
    if pricing is None:
        draft.note("no_price", where)
        return None
    try:
        given = Pricing.model_validate(pricing)
    except ValidationError as error:
        _note(error, where, draft)
        return None
    return _of(given, where, draft)


def _of(given: Pricing, where: str, draft: Draft) -> dict[str, Any] | None:
    low, high = given.min_price, given.max_price
    middle = None if low is None or high is None else (low + high) / 2
    amount = given.avg_price if given.avg_price is not None else middle
    if amount is None:
        draft.note("no_price", where, "neither an average nor a range")
        return None
    ends = [money(value) for value in (amount if low is None else low, amount, amount if high is None else high)]
    if sorted(ends, key=Decimal) != ends:
        draft.note("bad_price", where, f"min {ends[0]}, average {ends[1]} and max {ends[2]} are not in order")
        return None
    return {
        "amount": ends[1],
        "currency": given.currency,
        "usd": _dollars(given, amount),
        "basis": "midpoint" if amount == middle else "reported",
        "min": None if low is None else money(low),
        "max": None if high is None else money(high),
        "rate_type": given.rate_type or "fixed",
    }


def _dollars(given: Pricing, amount: Decimal) -> str | None:
    stated = None if given.usd_conversion is None else given.usd_conversion.avg_price
    if stated is not None:
        return money(stated)
    return money(amount) if given.currency == "USD" else None


def _note(error: ValidationError, prefix: str, draft: Draft) -> None:
    for where, what in complaints(error, prefix):
        draft.note("bad_price", where, what)


def pay_type(pricing: Any) -> str:
    """Return how the work is paid, as the source says it."""
    kind = cast("dict[str, Any]", pricing).get("rate_type") if isinstance(pricing, dict) else None
    return kind if isinstance(kind, str) and 0 < len(kind) <= 64 else "fixed"
