"""Frames of result tables as text: CSV that no spreadsheet takes for formulas, or JSON objects.

Times are RFC 3339 UTC with microseconds, lists and maps JSON text, null an empty field. Text that a spreadsheet would run begins
with one apostrophe more; who takes one away from what matches ``GUARDED`` has the value again.
"""

import json
import re

import polars as pl

from service.reporting.dictionary import TABLES, Type

GUARDED = re.compile(r"'+[=+\-@\t\r]")
_RUNS = r"^'*[=+\-@\t\r]"
_TIME = "%Y-%m-%dT%H:%M:%S%.6fZ"


def csv_bytes(table: str, frame: pl.DataFrame, *, head: bool = True) -> bytes:
    """Return RFC 4180 in UTF-8, with or without the line of the columns' names."""
    texts = [column.name for column in TABLES[table].columns if column.type is Type.TEXT]
    guarded = [
        pl.when(pl.col(name).str.contains(_RUNS)).then("'" + pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name in texts
    ]
    text = _plain(table, frame.with_columns(guarded)).write_csv(include_header=head, line_terminator="\r\n")
    return text.encode()


def json_rows(table: str, frame: pl.DataFrame) -> list[str]:
    """Return each row as a JSON object."""
    return [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in _plain(table, frame).iter_rows(named=True)]


def _plain(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    times = [column.name for column in TABLES[table].columns if column.type is Type.TIME]
    days = [column.name for column in TABLES[table].columns if column.type is Type.DATE]
    return frame.with_columns(
        *(pl.col(name).dt.strftime(_TIME).alias(name) for name in times),
        *(pl.col(name).dt.strftime("%Y-%m-%d").alias(name) for name in days),
    )
