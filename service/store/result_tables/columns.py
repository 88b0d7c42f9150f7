"""Values of result tables as the database hands them out: numbers as doubles, lists and maps as JSON text."""

from typing import Any

from sqlalchemy import ColumnElement, Double, Select, Text, cast, func


def number(value: ColumnElement[Any]) -> ColumnElement[Any]:
    return cast(value, Double)


def json_text(value: ColumnElement[Any]) -> ColumnElement[Any]:
    return cast(value, Text)


def list_text(value: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return an array as the text of a JSON list."""
    return cast(func.to_jsonb(value), Text)


def untyped(query: Any) -> Select[Any]:
    """Return the statement without the types of its columns, which are the dictionary's."""
    return query
