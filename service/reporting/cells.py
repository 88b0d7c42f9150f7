"""Values of report tables as people read them."""

from service.domain.reports import Cell, ReportColumn

NOTHING = "\u2013"
"""An undefined value; never 0."""


def shown(value: Cell, column: ReportColumn) -> str:
    """Return the value in its column's unit; undefined ones as a dash."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return _number(value, column.unit)


def _number(value: float, unit: str) -> str:
    match unit:
        case "fraction":
            return f"{100 * value:.1f} %"
        case "percent":
            return f"{value:.1f} %"
        case "usd":
            return f"${value:,.2f}"
        case "s":
            return f"{value:,.1f} s"
        case "elo":
            return f"{value:.1f}"
        case "count":
            return f"{value:,.0f}"
        case _:
            return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def with_interval(row: dict[str, Cell], column: ReportColumn) -> str:
    """Return the value with its interval where the column has one."""
    text = shown(row.get(column.name), column)
    if column.interval is None:
        return text
    low, high = row.get(f"{column.interval}_low"), row.get(f"{column.interval}_high")
    return text if low is None or high is None else f"{text} [{shown(low, column)}, {shown(high, column)}]"
