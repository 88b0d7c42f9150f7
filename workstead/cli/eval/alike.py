"""Whether two reports say the same: table by table, cell by cell, but for how long things took."""

from collections.abc import Iterator, Mapping
from typing import Any

from workstead.models_evaluations import Report, ReportTable

TIMES = "s"
"""Unit of columns that a clock filled."""


def differences(before: Report, after: Report) -> Iterator[str]:
    """Yield what differs, named: tables, rows, cells, what they rest on and how they were computed."""
    mine, other = {t.name: t for t in before.tables}, {t.name: t for t in after.tables}
    yield from (f"{name}: only in one of them" for name in sorted(mine.keys() ^ other.keys()))
    for name in mine.keys() & other.keys():
        yield from _of_table(mine[name], other[name])


def _of_table(mine: ReportTable, other: ReportTable) -> Iterator[str]:
    for what in ("n", "unit", "excluded", "method", "settings", "notes", "columns"):
        if getattr(mine, what) != getattr(other, what):
            yield f"{mine.name}: {what}: {getattr(mine, what)} and {getattr(other, what)}"
    if len(mine.rows) != len(other.rows):
        yield f"{mine.name}: {len(mine.rows)} rows and {len(other.rows)}"
        return
    timed = {str(column["name"]) for column in mine.columns if column.get("unit") == TIMES}
    for n, (row, same) in enumerate(zip(mine.rows, other.rows, strict=True), 1):
        for name in sorted((row.keys() | same.keys()) - timed):
            if row.get(name) != same.get(name):
                yield f"{mine.name}: row {n} ({_called(row)}): {name}: {row.get(name)} and {same.get(name)}"


def _called(row: Mapping[str, Any]) -> str:
    return str(next((value for value in row.values() if isinstance(value, str)), ""))[:80]
