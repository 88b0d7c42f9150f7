"""Many rows by one statement that is always the same: its columns as arrays. One round trip, prepared once."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Float, Table, TextClause, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine

_DIALECT = postgresql.dialect()


def insert_of_many(table: Table, names: Sequence[str], *, where: str = "", tail: str = "") -> TextClause:
    """Return the statement for these columns; ``where`` and ``tail`` (ON CONFLICT …) are SQL of ours."""
    given = ", ".join(f"CAST(:{name} AS {_array_of(table, name)}[])" for name in names)
    taken = ", ".join(f"CAST(k.{name} AS jsonb)" if _is_json(table, name) else f"k.{name}" for name in names)
    columns = ", ".join(names)
    return text(  # names of our own tables and columns only
        f"INSERT INTO {table.name} ({columns}) SELECT {taken} FROM unnest({given}) AS k({columns}) {where} {tail}"  # noqa: S608
    )


def arrays_of(table: Table, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the statement's parameters; JSON must be clean (domain.cleaning)."""
    return {name: [_given(row[name], table.c[name].type) for row in rows] for name in names}


def _given(value: Any, type_: TypeEngine[Any]) -> Any:
    """The driver sends a list as of its members' one type: whole numbers among fractions are made fractions."""
    if value is None:
        return None
    if isinstance(type_, JSONB):
        return json.dumps(value)
    return float(value) if isinstance(type_, Float) else value


def _is_json(table: Table, name: str) -> bool:
    return isinstance(table.c[name].type, JSONB)


def _array_of(table: Table, name: str) -> str:
    return "text" if _is_json(table, name) else table.c[name].type.compile(_DIALECT)
