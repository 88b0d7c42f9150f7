"""Kinds of reports and what makes them, each loaded when it is first asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Literal, cast

from service.domain.errors import Invalid
from service.domain.reports import Report, ReportHeader, ReportKind, ReportSettings, ReportTable
from service.reporting.frames import Tables
from service.reporting.reports.validity import validity

Builder = Callable[[Tables, ReportHeader, ReportSettings], list[ReportTable]]
Kind = ReportKind | Literal["comparison"]
REPORTS: Mapping[Kind, str] = {
    "overview": "service.reporting.reports.overview:overview",
    "jobbench": "service.reporting.reports.jobbench:jobbench",
    "rli": "service.reporting.reports.rli:rli",
    "payworthy": "service.reporting.reports.payworthy:payworthy",
    "freelance": "service.reporting.reports.freelance:freelance",
    "comparison": "service.reporting.reports.comparison:comparison",
}
"""Kind → ``module:function``."""


def build(kind: Kind, tables: Tables, header: ReportHeader, settings: ReportSettings) -> Report:
    """Return the report. Raises Invalid ``unknown_report``, and for settings that fit nothing in it."""
    path = REPORTS.get(kind)
    if path is None:
        raise Invalid("unknown_report", f"no report {kind!r}; there are: {', '.join(REPORTS)}")
    module, _, name = path.partition(":")
    builder = cast("Builder", getattr(import_module(module), name))
    return Report(
        kind=kind, header=header, validity=validity(tables, header, settings), tables=builder(tables, header, settings)
    )
