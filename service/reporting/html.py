"""A report as one HTML file: it opens offline, needs no script, and asks nobody for anything."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from service.domain.errors import Invalid
from service.domain.reports import Report, ReportColumn, ReportHeader, ReportTable, ValidityLine
from service.reporting.cells import with_interval
from service.reporting.plots import svg

MOST_ROWS = 2_000
"""Of one table on the page; all of them are in the files beside it."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1c2530;background:#fff}
h1,h2{line-height:1.2}h2{margin-top:2.5rem;border-top:1px solid #d6dbe1;padding-top:1rem}
table{border-collapse:collapse;margin:1rem 0;display:block;overflow-x:auto}
th,td{padding:.3rem .7rem;border-bottom:1px solid #e3e7ec;text-align:left;vertical-align:top}
th{font-weight:600;background:#f4f6f8}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
p.about,li{color:#48535f}.warning{color:#8a3b00;font-weight:600}pre{white-space:pre-wrap}
img{max-width:100%;height:auto}footer{margin-top:3rem;border-top:1px solid #d6dbe1;color:#48535f}
@media print{body{margin:0;max-width:none}h2{break-after:avoid}}
"""


def page(report: Report) -> str:
    """Return the whole file. What came from outside is text in it, figures are pictures."""
    title = escape(report.header.title)
    parts = [
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>",
        f'<meta http-equiv=Content-Security-Policy content="{_POLICY}"><meta name=viewport content="width=device-width">',
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>",
        *_header(report.header),
        *_validity(report.validity),
        *(part for table in report.tables for part in _table(table)),
        f"<footer><pre>{escape(report.header.notice)}</pre></footer></body></html>\n",
    ]
    return "\n".join(parts)


def _header(header: ReportHeader) -> Iterator[str]:
    said = {
        "Benchmark": header.benchmark or "none",
        "Grading plan": header.plan,
        "Agents": header.agents,
        "Tasks": header.tasks,
        "Runs": header.runs,
        "Evaluations": ", ".join(header.evaluations),
        **{f"Policy: {name}": value for name, value in header.policies.model_dump().items()},
        **{f"Setting: {name}": value for name, value in header.settings.model_dump(exclude_defaults=True).items()},
        "Seed": header.seed if header.settings.seed is None else header.settings.seed,
    }
    yield "<table>"
    yield from (f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in said.items())
    yield "</table>"


def _validity(lines: list[ValidityLine]) -> Iterator[str]:
    yield "<h2>Validity</h2><table><tr><th>What</th><th class=n>Runs</th><th>By agent</th></tr>"
    for line in lines:
        kind = " class=warning" if line.warning else ""
        agents = ", ".join(f"{name}: {count}" for name, count in line.by_agent.items())
        count = f"{line.count} of {line.of}"
        yield f"<tr><td{kind}>{escape(line.text)}</td><td class=n>{count}</td><td>{escape(agents)}</td></tr>"
    yield "</table>"


def _table(table: ReportTable) -> Iterator[str]:
    yield f'<h2 id="{table.name}">{escape(table.title)}</h2>'
    if table.plot is not None and table.rows:
        yield from _figure(table)
    if table.rows:
        yield from _rows(table)
    yield f"<p class=about>{escape(_about(table))}</p>"
    yield from (f"<p class=about>{escape(note)}</p>" for note in table.notes)


def _figure(table: ReportTable) -> Iterator[str]:
    try:
        drawn = b64encode(svg(table)).decode()
    except Invalid:
        return
    yield f'<p><img alt="{escape(table.title)}" src="data:image/svg+xml;base64,{drawn}"></p>'


def _rows(table: ReportTable) -> Iterator[str]:
    columns = [column for column in table.columns if not _is_end(column, table)]
    yield f"<table><tr>{''.join(f'<th{_class(c)}>{escape(c.title)}</th>' for c in columns)}</tr>"
    for row in table.rows[:MOST_ROWS]:
        cells = (f"<td{_class(c)}>{escape(with_interval(row, c))}</td>" for c in columns)
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</table>"
    if len(table.rows) > MOST_ROWS:
        yield f"<p class=about>{len(table.rows) - MOST_ROWS} further rows are in the files only.</p>"


def _is_end(column: ReportColumn, table: ReportTable) -> bool:
    """Whether it is an end of another column's interval, which is shown there."""
    return any(column.name in (f"{c.interval}_low", f"{c.interval}_high") for c in table.columns if c.interval)


def _class(column: ReportColumn) -> str:
    return " class=n" if column.unit else ""


def _about(table: ReportTable) -> str:
    left_out = ", ".join(f"{count} {why}" for why, count in table.excluded.items()) or "none"
    settings = _settings(table.settings)
    return f"n = {table.n} {table.unit}; left out: {left_out}. {table.method}" + (
        f" Settings: {settings}." if settings else ""
    )


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in settings.items())
