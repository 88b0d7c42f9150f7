"""A payload's fields, taken with their types and bounds. What a model writes is foreign: nothing is guessed or converted."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from service.domain.cleaning import clean_str
from service.domain.desktop import MAX_TEXT, ActionType, DesktopAction
from service.domain.errors import Invalid

T = TypeVar("T")
_MAX_NAMED = 40
"""Most characters of a foreign word that an error repeats."""


def bad(detail: str) -> Invalid:
    return Invalid("bad_action", detail)


def act(type: ActionType, **fields: Any) -> DesktopAction:
    """Return the action. Raises Invalid ``bad_action`` where its fields are out of the unified model's bounds."""
    try:
        return DesktopAction(type=type, **fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise bad(f"{type}: {where + ': ' if where else ''}{first['msg'].removeprefix('Value error, ')}") from error


class Fields:
    """The fields of one object. Null counts as absent; every method but ``has`` raises Invalid ``bad_action``."""

    def __init__(self, values: Mapping[str, Any], of: str) -> None:
        self.values = values
        self.of = of[:_MAX_NAMED]

    def has(self, name: str) -> bool:
        return self.values.get(name) is not None

    def wrong(self, name: str, wanted: str) -> Invalid:
        return bad(f"{self.of}: {name} must be {wanted}" if self.has(name) else f"{self.of}: {name} is missing")

    def text(self, name: str, default: str | None = None, most: int = MAX_TEXT) -> str:
        value = self.values.get(name, default)
        value = default if value is None else value
        if not isinstance(value, str) or len(value) > most:
            raise self.wrong(name, f"a text of at most {most} characters")
        if clean_str(value)[1]:
            raise self.wrong(name, "a text without NUL and lone surrogates")
        return value

    def number(self, name: str, low: float, high: float, default: float | None = None) -> float:
        if default is not None and not self.has(name):
            return default
        value = finite(self.values.get(name))
        if value is None or not low <= value <= high:
            raise self.wrong(name, f"a number from {low:g} to {high:g}")
        return value

    def whole(self, name: str, low: int, high: int, default: int | None = None) -> int:
        value = self.number(name, low, high, default)
        if value != int(value):
            raise self.wrong(name, f"a whole number from {low} to {high}")
        return int(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def choice(self, name: str, of: Mapping[str, T], default: str | None = None) -> T:
        word = self.text(name, default).lower()
        if word not in of:
            raise self.wrong(name, f"one of {', '.join(of)}")
        return of[word]

    def numbers(self, name: str, count: int) -> list[float]:
        found = [finite(value) for value in self._list(name, count)]
        numbers = [value for value in found if value is not None]
        if len(numbers) != count or len(found) != count:
            raise self.wrong(name, f"a list of {count} numbers")
        return numbers

    def texts(self, name: str, most: int) -> list[str]:
        values = self._list(name, most)
        return [Fields({name: value}, self.of).text(name, most=_MAX_NAMED) for value in values]

    def objects(self, name: str, most: int) -> list["Fields"]:
        values = self._list(name, most)
        if not all(isinstance(value, Mapping) for value in values):
            raise self.wrong(name, "a list of objects")
        return [Fields(cast(Mapping[str, Any], value), self.of) for value in values]

    def inner(self, name: str) -> "Fields":
        value = self.values.get(name)
        if not isinstance(value, Mapping):
            raise self.wrong(name, "an object")
        return Fields(cast(Mapping[str, Any], value), self.of)

    def _list(self, name: str, most: int) -> Sequence[Any]:
        value = self.values.get(name)
        if not isinstance(value, list | tuple) or len(cast(Sequence[Any], value)) > most:
            raise self.wrong(name, f"a list of at most {most}")
        return cast(Sequence[Any], value)


def finite(value: object) -> float | None:
    """Return a JSON number's value; null for anything else, NaN and infinities included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # An integer too large for a float is no coordinate and no count either.
    return float(value) if abs(value) < 2**53 and math.isfinite(value) else None
