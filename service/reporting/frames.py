"""Result tables as data frames: each with exactly the dictionary's columns and types, also when it has no row."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from service.reporting.dictionary import TABLES, Type

Tables = Mapping[str, pl.DataFrame]
DTYPES: Mapping[Type, pl.DataType] = {
    Type.TEXT: pl.String(),
    Type.INTEGER: pl.Int64(),
    Type.NUMBER: pl.Float64(),
    Type.BOOLEAN: pl.Boolean(),
    Type.TIME: pl.Datetime("us", "UTC"),
    Type.DATE: pl.Date(),
    Type.JSON: pl.String(),
}


def schema(table: str) -> dict[str, pl.DataType]:
    """Return column → type. Raises KeyError for what is no table."""
    return {column.name: DTYPES[column.type] for column in TABLES[table].columns}


def frame(table: str, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return the rows as a frame; members that are no columns are left out.

    Raises TypeError or a polars error for a value of another type, KeyError for a row without a column.
    """
    columns = schema(table)
    values = {name: [row[name] for row in rows] for name in columns}
    return pl.DataFrame(values, schema=columns, strict=True)


def empty(table: str) -> pl.DataFrame:
    return pl.DataFrame(schema=schema(table))


def joined(table: str, pieces: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the pieces one below the other."""
    return pl.concat([empty(table), *pieces])
