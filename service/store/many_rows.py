"""Many rows by one statement that is always the same: its columns as arrays. One round trip, prepared once."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Table, TextClause, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import JSONB

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
    return {name: [_given(row[name], json_too=_is_json(table, name)) for row in rows] for name in names}


def _given(value: Any, *, json_too: bool) -> Any:
    return json.dumps(value) if json_too and value is not None else value


def _is_json(table: Table, name: str) -> bool:
    return isinstance(table.c[name].type, JSONB)


def _array_of(table: Table, name: str) -> str:
    return "text" if _is_json(table, name) else table.c[name].type.compile(_DIALECT)
