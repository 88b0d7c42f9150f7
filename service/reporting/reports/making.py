"""The parts that all report tables are made of."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from service.domain.errors import Invalid
from service.domain.reports import Cell, ReportColumn, ReportTable
from service.domain.tasks import Strict
from service.reporting.intervals import Interval
from service.reporting.reports.data import Data

BOOTSTRAP = "95 % intervals: percentile bootstrap over tasks (Efron and Tibshirani 1993)."
WILSON = "95 % intervals: Wilson (1927), one run or project each."
Row = dict[str, Cell]
AGENT = ReportColumn(name="agent", title="Agent")
Options = TypeVar("Options", bound=Strict)


def count(name: str, title: str) -> ReportColumn:
    return ReportColumn(name=name, title=title, unit="count")


def usd(name: str, title: str) -> ReportColumn:
    return ReportColumn(name=name, title=title, unit="usd")


def seconds(name: str, title: str) -> ReportColumn:
    return ReportColumn(name=name, title=title, unit="s")


def fraction(name: str, title: str, *, interval: bool = False) -> ReportColumn:
    return ReportColumn(name=name, title=title, unit="fraction", interval=name if interval else None)


def bounds(name: str, interval: Interval | None) -> Row:
    """Return the cells of an interval whose column has the prefix ``name``."""
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def common(data: Data, **further: Any) -> dict[str, Any]:
    """Return what every bootstrap's reader needs, and ``further`` settings of one table."""
    return {"seed": data.seed, "draws": data.settings.draws, **further}


def table(
    data: Data,
    name: str,
    title: str,
    columns: Sequence[ReportColumn],
    rows: Sequence[Row],
    *,
    method: str,
    n: int | None = None,
    unit: str = "runs",
    excluded: Mapping[str, int] | None = None,
    settings: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    plot: Mapping[str, Any] | None = None,
) -> ReportTable:
    """Make a table. By default its n is the runs that count, and what it leaves out all others."""
    return ReportTable(
        name=name,
        title=title,
        columns=list(columns),
        rows=list(rows),
        n=len(data.counted) if n is None else n,
        unit=unit,
        excluded=dict(data.excluded if excluded is None else excluded),
        method=method,
        settings=dict(settings or {}),
        notes=[*notes],
        plot=None if plot is None else dict(plot),
    )


def options(model: type[Options], given: Mapping[str, Any]) -> Options:
    """Read the options of one kind of report. Raises Invalid ``invalid_option`` for one that is unknown or does not fit."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Invalid("invalid_option", f"options.{where}: {first['msg']}") from error
