"""What a source calls the fields that we know: a JSON or TOML file, which importers of tables and of postings share.

``{"rows": "/data/items", "fields": {"id": "posting_id", "price": "/budget/amount", "kind": {"value": "text"}, …}}``: a field
comes from a column (or key), from a JSON pointer (it starts with ``/``), or is a constant; see :class:`Rule`.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from workstead.importers.fields import complaints
from workstead.importers.untrusted import MAX_DIGITS, parse_json, unstorable
from workstead.task_dir import InvalidInput, read_text

MAX_ELEMENTS = 10_000
"""Of one list."""
_NAME = Annotated[str, Field(min_length=1, max_length=256)]


class Rule(BaseModel):
    """Where one field comes from. Either ``from`` or ``value``."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    source: list[_NAME] = Field(default_factory=list[str], alias="from", max_length=16)
    """A column or pointer, or several: the first that has a value."""
    value: Any = None
    """Constant of every row."""
    map: dict[str, Any] | None = Field(default=None, max_length=10_000)
    """What a value of the source means; one that is not here is an error."""
    split: Annotated[str, Field(min_length=1, max_length=16)] | None = None
    """What parts the elements of a list that is written as one text."""
    default: Any = None
    """Taken where the source has nothing."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, given: Any) -> Any:
        if isinstance(given, str | list):
            body: dict[str, Any] = {"from": given}
        elif isinstance(given, dict):
            body = cast("dict[str, Any]", given)
        else:
            return given
        return {**body, "from": [body["from"]]} if isinstance(body.get("from"), str) else body

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if bool(self.source) == (self.value is not None):
            raise ValueError("either `from` or `value`")
        return self


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: Annotated[str, Field(max_length=256, pattern=r"^(/.*)?$")] = ""
    fields: dict[_NAME, Rule] = Field(max_length=256)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a field of a row; ``where`` names row, field and origin."""

    where: str
    detail: str


@dataclass(frozen=True, slots=True)
class FieldMap:
    """Field → rule. ``rows`` is the pointer of the list within a JSON file ("" is the file itself)."""

    rules: Mapping[str, Rule]
    rows: str = ""

    def apply(self, row: Mapping[str, Any], name: str) -> tuple[dict[str, Any], list[Trouble]]:
        """Return each mapped field's value (null: the row has none) and what went wrong; ``name`` says which row."""
        values: dict[str, Any] = {}
        troubles: list[Trouble] = []
        for field, rule in self.rules.items():
            try:
                values[field] = _value(rule, row)
            except ValueError as error:
                values[field] = None
                origin = f" ({', '.join(rule.source)})" if rule.source else ""
                troubles.append(Trouble(f"{name}, field {field}{origin}", str(error)))
        return values, troubles


def read_mapping(path: Path, known: Collection[str], required: Collection[str] = ()) -> FieldMap:
    """Read a mapping file, TOML by its suffix, else JSON. Raises InvalidInput naming every field that does not fit."""
    problems: list[str] = []
    text = read_text(path, path.name, problems)
    if text is None or problems:
        raise InvalidInput(path, problems)
    try:
        value = tomllib.loads(text) if path.suffix == ".toml" else parse_json(text.encode())
        mapping = _File.model_validate(value)
    except ValidationError as error:
        raise InvalidInput(path, [f"{where or '/'}: {what}" for where, what in complaints(error)]) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(path, [f"cannot be read: {error}"]) from error
    return checked(path, FieldMap(mapping.fields, mapping.rows), known, required)


def checked(path: Path, mapping: FieldMap, known: Collection[str], required: Collection[str]) -> FieldMap:
    """Return ``mapping`` if it has no unknown field and all required ones; a known ``facet.`` takes every ``facet.<name>``.

    Raises InvalidInput.
    """
    open_ended = tuple(name for name in known if name.endswith("."))
    unknown = sorted(name for name in set(mapping.rules) - set(known) if not name.startswith(open_ended))
    missing = sorted(set(required) - set(mapping.rules))
    problems = [*(f"unknown field {n!r}" for n in unknown), *(f"field {n!r} is missing" for n in missing)]
    constants = [n for n, rule in mapping.rules.items() if unstorable([rule.value, rule.default, rule.map])]
    problems += [f"field {n!r}: a text has a NUL or a lone surrogate" for n in constants]
    if problems:
        raise InvalidInput(path, [*problems, f"known fields: {', '.join(sorted(known))}"])
    return mapping


def _value(rule: Rule, row: Mapping[str, Any]) -> Any:
    """Raises ValueError."""
    if not rule.source:
        return _json_value(rule.value)
    found = next((v for v in (find(row, source) for source in rule.source) if not _absent(v)), None)
    if _absent(found):
        return _json_value(rule.default)
    if rule.split is not None and isinstance(found, str):
        found = [part.strip() for part in found.split(rule.split) if part.strip()]
    if isinstance(found, list) and len(cast("list[Any]", found)) > MAX_ELEMENTS:
        raise ValueError(f"has more than {MAX_ELEMENTS} elements")
    return _mapped(rule.map, found)


def _mapped(known: Mapping[str, Any] | None, found: Any) -> Any:
    if known is None:
        return found
    if isinstance(found, list):
        return [_mapped(known, one) for one in cast("list[Any]", found)]
    key = found if isinstance(found, str) else str(found)
    if key not in known:
        raise ValueError(f"{key[:80]!r} is no value that `map` knows")
    return _json_value(known[key])


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _json_value(value: Any) -> Any:
    # TOML has days and times, which no manifest has.
    return value.isoformat() if isinstance(value, date | time) else value


def find(value: Any, source: str) -> Any:
    """Return what a key or (from ``/`` on) a JSON pointer names within ``value``; null where there is nothing."""
    if not source.startswith("/"):
        return _step(value, source)
    for part in source[1:].split("/"):
        value = _step(value, part.replace("~1", "/").replace("~0", "~"))
    return value


def _step(value: Any, part: str) -> Any:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value).get(part)
    if isinstance(value, list) and part.isascii() and part.isdigit() and len(part) < 9:
        items = cast("list[Any]", value)
        return items[int(part)] if int(part) < len(items) else None
    return None


def decimal_of(value: Any) -> Decimal:
    """Return a number of JSON, or a plain decimal text as tables have it. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float | str):
        raise ValueError("must be a finite number")
    text = str(value).strip()
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError("must be a finite number") from None
    if not number.is_finite() or len(text) > MAX_DIGITS or abs(number) >= Decimal(10) ** MAX_DIGITS:
        raise ValueError("must be a finite number")
    return number


TableNumber = Annotated[Decimal, BeforeValidator(decimal_of)]
"""For pydantic: a number, also one that is written as text."""
