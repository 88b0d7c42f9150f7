"""Types of the fields of a source, for pydantic: no number where a text stands, nothing empty, nothing without bounds."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError


class Loose(BaseModel):
    """A part of a source: fields that we do not know are ignored, those that we know are strictly what they are."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


def _number(value: Any) -> Decimal:
    # A bool is an int to Python, and `true` is no price and no weight.
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be a finite number")
    return Decimal(value)


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


Number = Annotated[Decimal, BeforeValidator(_number)]
Filled = Annotated[str, Field(max_length=100_000), AfterValidator(_not_blank)]
Text = Annotated[str, Field(max_length=1_000_000)]


def complaints(error: ValidationError, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield (pointer, what is wrong) of each field; the value itself is not repeated."""
    for found in error.errors(include_url=False, include_context=False, include_input=False):
        yield prefix + "".join(f"/{part}" for part in found["loc"]), found["msg"].removeprefix("Value error, ")


def plain(number: Decimal) -> int | float:
    """Return a number as JSON has it."""
    return int(number) if number == number.to_integral_value() else float(number)
