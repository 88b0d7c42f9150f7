"""A report on a terminal: each table with n, what it left out and why, and its notes."""

from collections.abc import Mapping
from typing import Any

from workstead.cli.common import facts, line, out
from workstead.cli.tables import plain_table
from workstead.models_evaluations import Report, ReportTable

MOST_ROWS = 200
"""Of one table; the JSON has all."""


def show_report(found: Report) -> None:
    header = found.header
    names = ("title", "benchmark", "plan", "agents", "tasks", "runs", "notice")
    facts({name: header.get(name) for name in names})
    for entry in found.validity:
        if entry.get("count"):
            text = f"{entry.get('text')}: {entry.get('count')} of {entry.get('of')}"
            line(text, "yellow" if entry.get("warning") else "")
    for table in found.tables:
        show_table(table)


def show_table(table: ReportTable) -> None:
    line("")
    line(table.title or table.name, "bold")
    columns = [c for c in table.columns if not _is_bound(c, table)]
    rows = [[cell(row, column) for column in columns] for row in table.rows[:MOST_ROWS]]
    out.print(plain_table([str(c.get("title") or c.get("name")) for c in columns], rows))
    if len(table.rows) > MOST_ROWS:
        line(f"… and {len(table.rows) - MOST_ROWS} rows more; --json has all", "yellow")
    left_out = ", ".join(f"{n} {why}" for why, n in table.excluded.items()) or "none"
    line(f"n = {table.n} {table.unit}; left out: {left_out}", "dim")
    for note in table.notes:
        line(note, "dim")


def _is_bound(column: Mapping[str, Any], table: ReportTable) -> bool:
    """Tell whether the column is an end of another one's interval, which is shown there."""
    prefixes = [c["interval"] for c in table.columns if c.get("interval")]
    return any(column.get("name") in (f"{prefix}_low", f"{prefix}_high") for prefix in prefixes)


def cell(row: Mapping[str, Any], column: Mapping[str, Any]) -> str | None:
    """Return a value as people read it, with its interval."""
    value, unit = row.get(str(column.get("name"))), str(column.get("unit") or "")
    text = _number(value, unit)
    prefix = column.get("interval")
    if text is None or not prefix:
        return text
    low, high = (_number(row.get(f"{prefix}_{end}"), unit) for end in ("low", "high"))
    return text if low is None or high is None else f"{text} [{low}, {high}]"


def _number(value: Any, unit: str) -> str | None:
    if value is None or isinstance(value, bool | str):
        return None if value is None else str(value)
    if not isinstance(value, int | float):
        return str(value)
    match unit:
        case "fraction":
            return f"{100 * value:.1f} %"
        case "percent":
            return f"{value:.1f} %"
        case "usd":
            return f"${value:,.2f}"
        case "elo":
            return f"{value:.0f}"
        case _:
            return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
