"""The static page and its figures: hostile text stays text, nothing is asked of anybody, the same table is the same figure."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from service.domain.benchmarks import Policies
from service.domain.errors import Invalid
from service.domain.reports import Report, ReportColumn, ReportHeader, ReportSettings, ReportTable, ValidityLine
from service.reporting import plots
from service.reporting.cells import NOTHING, shown
from service.reporting.html import MOST_ROWS, page

EVIL = "<script>alert(1)</script>\"'&"


def table(**changes: Any) -> ReportTable:
    given: dict[str, Any] = {
        "name": "rates",
        "title": f"Rates {EVIL}",
        "columns": [
            ReportColumn(name="agent", title=f"Agent {EVIL}"),
            ReportColumn(name="rate", title="Rate", unit="fraction", interval="rate"),
            ReportColumn(name="rate_low", title="low", unit="fraction"),
            ReportColumn(name="rate_high", title="high", unit="fraction"),
        ],
        "rows": [
            {"agent": EVIL, "rate": 0.5, "rate_low": 0.4, "rate_high": 0.6},
            {"agent": "b", "rate": None, "rate_low": None, "rate_high": None},
        ],
        "n": 12,
        "excluded": {"stopped": 3},
        "method": "Share of tasks.",
        "settings": {"seed": 7},
        "notes": [f"note {EVIL}"],
        "plot": {"mark": "bar", "x": "agent", "y": "rate"},
    }
    return ReportTable(**{**given, **changes})


def report(*tables: ReportTable) -> Report:
    header = ReportHeader(
        title=f"Week {EVIL}", benchmark="b@1", evaluations=["eval_1"], plan="task@1", policies=Policies(),
        notice=f"Terms {EVIL}", agents=2, tasks=3, runs=12, settings=ReportSettings(missing="zero"),
    )  # fmt: skip
    line = ValidityLine(name="assisted", text=f"Assisted {EVIL}", count=1, of=12, by_agent={EVIL: 1}, warning=True)
    return Report(kind="overview", header=header, validity=[line], tables=list(tables))


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_says_everything_and_runs_nothing() -> None:
    text = page(report(table()))
    parser = _Tags()
    parser.feed(text)
    names = {tag for tag, _ in parser.tags}
    assert "script" not in names
    assert not any(name.startswith("on") for _, attributes in parser.tags for name in attributes)
    pictures = [attributes["src"] or "" for tag, attributes in parser.tags if tag == "img"]
    assert [src[:26] for src in pictures] == ["data:image/svg+xml;base64,"]
    assert not re.search(r"(src|href)=\"?https?:", text)
    for said in (
        "50.0 % [40.0 %, 60.0 %]",
        NOTHING,
        "n = 12 runs",
        "3 stopped",
        "seed = 7",
        "1 of 12",
        "Policy: missing",
    ):
        assert said in text, said


def test_a_long_table_is_cut_and_says_so() -> None:
    rows: list[Any] = [{"agent": str(n), "rate": 0.1} for n in range(MOST_ROWS + 5)]
    text = page(report(table(rows=rows, plot=None)))
    assert text.count("<tr><td>") == MOST_ROWS
    assert "5 further rows" in text


@pytest.mark.parametrize("mark", ["bar", "line", "step", "point", "area"])
def test_every_mark_is_drawn_the_same_each_time(mark: str) -> None:
    one = table(plot={"mark": mark, "x": "agent", "y": "rate"})
    first = plots.svg(one)
    assert first.startswith(b"<svg")
    assert b"<script" not in first
    assert plots.svg(one) == first
    assert plots.png(one)[:8] == b"\x89PNG\r\n\x1a\n"


def test_numbers_and_days_have_their_own_axes() -> None:
    columns = [
        ReportColumn(name="x.y[0]", title="X"),
        ReportColumn(name="y", title="Y"),
        ReportColumn(name="c", title="C"),
    ]
    kinds: list[tuple[list[Any], str]] = [
        ([1, 2.5], "quantitative"), (["2026-01-01", "2026-02-01"], "temporal"), (["a", "b"], "nominal"),
    ]  # fmt: skip
    for values, kind in kinds:
        rows: list[Any] = [{"x.y[0]": value, "y": 1, "c": "k"} for value in values]
        drawn = plots.specification(
            table(columns=columns, rows=rows, plot={"mark": "line", "x": "x.y[0]", "y": "y", "color": "c"})
        )
        assert drawn["encoding"]["x"]["type"] == kind
        assert [row["x"] for row in drawn["data"]["values"]] == values


@pytest.mark.parametrize("plot", [None, {"mark": "bar", "x": "agent"}, {"mark": "pie", "x": "agent", "y": "rate"}])
def test_what_has_no_figure_is_refused(plot: Any) -> None:
    with pytest.raises(Invalid, match="no figure"):
        plots.svg(table(plot=plot))


def test_values_are_shown_in_their_units() -> None:
    units: list[tuple[Any, Any, str]] = [
        (0.1234, "fraction", "12.3 %"), (12.34, "percent", "12.3 %"), (1234.5, "usd", "$1,234.50"), (2, "count", "2"),
        (None, "usd", NOTHING), (True, "", "yes"), ("x", "", "x"), (0.123456, "", "0.1235"), (61.25, "s", "61.2 s"),
    ]  # fmt: skip
    for value, unit, text in units:
        assert shown(value, ReportColumn(name="a", title="A", unit=unit)) == text
