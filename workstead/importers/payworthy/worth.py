"""What a job is worth: a fixed budget, else the hourly rate times the hours that jobs of its length take."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from workstead.importers.amounts import money
from workstead.importers.drafts import Draft
from workstead.importers.fields import Loose, Number, complaints
from workstead.importers.payworthy.posting import Posting
from workstead.importers.untrusted import read_json
from workstead.task_dir import InvalidInput

MOST_BUDGET, MOST_RATE = Decimal(1_000_000), Decimal(5_000)
"""Dollars, and dollars an hour; more is a slip of the client's, and costs the item."""
MAX_BYTES = 1 << 20
_OWN = {
    "less than 1 week": 15,
    "less than 1 month": 40,
    "1 to 3 months": 160,
    "3 to 6 months": 400,
    "more than 6 months": 900,
}


class Factors(Loose):
    """Hours that a job of each length takes. The paper has such a table and does not print it: so it has a name here."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    hours: Annotated[dict[str, Annotated[Number, Field(gt=0, le=100_000)]], Field(max_length=100)]

    def of(self, duration: str | None) -> Decimal | None:
        wanted = (duration or "").strip().casefold()
        return next((hours for band, hours in self.hours.items() if band.strip().casefold() == wanted), None)


def read_factors(path: Path | None) -> Factors:
    """Read ``{"name": …, "hours": {"1 to 3 months": 160, …}}``; none is our own. Raises InvalidInput, OSError."""
    if path is None:
        return Factors(name="workstead-1", hours={band: Decimal(hours) for band, hours in _OWN.items()})
    try:
        return Factors.model_validate(read_json(path, MAX_BYTES))
    except ValidationError as error:
        raise InvalidInput(path, [f"{where or '/'}: {what}" for where, what in complaints(error)]) from error


@dataclass(frozen=True, slots=True)
class Worth:
    price: dict[str, Any]
    basis: Literal["given", "posted", "imputed"]
    """How the contract's value is known."""


def worth_of(posting: Posting, factors: Factors, draft: Draft) -> Worth | None:
    """Return the contract's value, or null with the reason on the draft; an absurd one quarantines the item."""
    _refuse_absurd(posting, draft)
    low, high = posting.hourly_min, posting.hourly_max
    if low is not None and high is not None and low > high:
        draft.note("bad_price", "hourly_min", "is above hourly_max")
        low = high = None
    if posting.contract_value is not None:
        return _worth(posting, posting.contract_value, "given")
    if posting.pay_type == "fixed":
        return _worth(posting, posting.budget, "posted") if posting.budget is not None else _unknown(draft, "budget")
    ends = [end for end in (low, high) if end is not None]
    if not ends:
        return _unknown(draft, "hourly_min")
    if (hours := factors.of(posting.duration)) is None:
        draft.note("no_price", "duration", f"table {factors.name} has no hours for it")
        return None
    return _worth(posting, sum(ends, Decimal(0)) / len(ends) * hours, "imputed")


def _refuse_absurd(posting: Posting, draft: Draft) -> None:
    if posting.budget is not None and posting.budget > MOST_BUDGET:
        draft.quarantine("absurd_budget", "budget", f"is more than {MOST_BUDGET}")
    if any(rate is not None and rate > MOST_RATE for rate in (posting.hourly_min, posting.hourly_max)):
        draft.quarantine("absurd_rate", "hourly_max", f"is more than {MOST_RATE} an hour")


def _unknown(draft: Draft, where: str) -> None:
    draft.note("no_price", where)


def _worth(posting: Posting, value: Decimal, basis: Literal["given", "posted", "imputed"]) -> Worth:
    amount = money(value)
    known: Mapping[str, str] = {"given": "reported", "posted": "posted", "imputed": "imputed"}
    price = {
        "amount": amount,
        "currency": posting.currency,
        "usd": amount if posting.currency == "USD" else None,
        "basis": known[basis],
        "rate_type": posting.pay_type,
    }
    return Worth(price, basis)
