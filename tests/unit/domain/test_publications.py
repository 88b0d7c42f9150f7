"""What is withdrawn is gone from every table that names it, and nothing else is."""

from datetime import UTC, datetime

from service.domain.benchmarks import Policies
from service.domain.publications import Withdrawn, agents_of, as_shown
from service.domain.reports import Cell, Report, ReportColumn, ReportHeader, ReportSettings, ReportTable, ValidityLine

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def table(name: str, agents: list[str]) -> ReportTable:
    columns = [
        ReportColumn(name="agent", title="Agent"),
        ReportColumn(name="vendor", title="Vendor"),
        ReportColumn(name="score", title="Score", unit="fraction", interval="score"),
    ]
    rows: list[dict[str, Cell]] = [
        {"agent": a, "vendor": "acme", "score": 0.5, "score_low": 0.4, "score_high": 0.6} for a in agents
    ]
    return ReportTable(name=name, title=name, columns=columns, rows=rows, n=4, method="mean")


def report() -> Report:
    header = ReportHeader(
        title="R", benchmark=None, evaluations=["eval_1"], plan="task@1", policies=Policies(), notice="", agents=2, tasks=2,
        runs=4, settings=ReportSettings(),
    )  # fmt: skip
    line = ValidityLine(name="retried", text="retried", count=2, of=4, by_agent={"one": 1, "two": 1})
    return Report(
        kind="overview", header=header, validity=[line], tables=[table("a", ["one", "two"]), table("b", ["one"])]
    )


def test_figures_go_and_the_reason_stands_in_their_place() -> None:
    gone = Withdrawn(agent="two", reason="a wrong flag", author="tok_1", at=AT)
    shown = as_shown(report(), [gone])
    first, second = shown.tables
    assert first.rows[0] == table("a", ["one"]).rows[0]
    assert first.rows[1] == {"agent": "two", "vendor": "acme", "score": None, "score_low": None, "score_high": None}
    assert first.notes == ["two: withdrawn on 2026-11-30: a wrong flag"]
    assert second == table("b", ["one"])
    assert shown.validity[0].by_agent == {"one": 1}
    assert as_shown(report(), []) == report()


def test_agents_are_those_with_rows() -> None:
    assert agents_of(report()) == {"one", "two"}
