"""Small result tables for tests: rows with what a test says, and plain values for the rest."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from service.domain.benchmarks import Grouping, Policies
from service.domain.reports import ReportHeader, ReportSettings, ReportTable
from service.reporting.dictionary import TABLES, Type
from service.reporting.frames import Tables, empty, frame

START = datetime(2026, 11, 1, 8, tzinfo=UTC)
ZEROS = {Type.TEXT: "", Type.INTEGER: 0, Type.NUMBER: 0.0, Type.BOOLEAN: False, Type.TIME: START, Type.JSON: "{}"}


class World:
    """Tables that grow."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}

    def add(self, table: str, **values: Any) -> dict[str, Any]:
        """Add a row: columns that are not named are null where they may be, else empty."""
        columns = {c.name: c for c in TABLES[table].columns}
        assert values.keys() <= columns.keys(), values.keys() - columns.keys()
        row = {name: None if c.null else ZEROS[c.type] for name, c in columns.items()} | values
        row = {
            n: json.dumps(v) if columns[n].type is Type.JSON and not isinstance(v, str | None) else v
            for n, v in row.items()
        }
        self.rows[table].append(row)
        return row

    def agent(self, name: str, *, scaffold: str = "loop", model: str = "m", **values: Any) -> None:
        released = date(2026, 1, 1)
        plain = {"label": name, "vendor": "v", "released_on": released, "effort": None}
        self.add("agents", agent_id=name, scaffold=f"{scaffold}@1", model=model, **(plain | values))

    def task(self, name: str, facets: Mapping[str, Any] | None = None, **values: Any) -> None:
        plain = {"item_key": name, "status": "ok", "check": "ok"}
        self.add("tasks", task_id=name, name=name, facets=facets or {}, **(plain | values))

    def run(self, agent: str, task: str, counted: float | None, *, most: float = 1.0, **values: Any) -> str:
        n = len(self.rows["runs"])
        plain: dict[str, Any] = {
            "run_id": f"run_{n:05}",
            "evaluation_id": "eval_1",
            "sample": 1,
            "attempts": 1,
            "phase": "done",
            "outcome": "graded" if counted is not None else "ungraded",
            "exclusion": None if counted is not None else "ungraded",
            "ended_because": "completed",
            "flags": [],
            "plan": "task@1",
            "max_score": None if counted is None else most,
            "score": None if counted is None else counted * most,
            "fraction": counted,
            "ended_at": START + timedelta(minutes=n),
        }
        row = self.add("runs", agent_id=agent, task_id=task, counted=counted, **(plain | values))
        return str(row["run_id"])

    def verdict(self, run_id: str, criteria: Sequence[tuple[str, bool, float]] = (), **values: Any) -> str:
        """Add a graded verdict with its criteria: id, whether it passed, points to be had."""
        grading = f"grd_{len(self.rows['verdicts']):05}"
        plain = {
            "method": "rubric_chain",
            "plan": "task@1",
            "primary": True,
            "round": 1,
            "state": "graded",
            "score": sum(most for _, passed, most in criteria if passed),
            "max_score": sum(most for _, _, most in criteria),
        }
        self.add("verdicts", grading_id=grading, run_id=run_id, **(plain | values))
        for position, (criterion, passed, most) in enumerate(criteria):
            row = {"criterion": criterion, "passed": passed, "score": most if passed else 0.0, "max_score": most}
            self.add("criteria", grading_id=grading, run_id=run_id, position=position, **row)
        return grading

    def tables(self) -> Tables:
        return {name: frame(name, rows) if rows else empty(name) for name, rows in self.rows.items()}


def header(policies: Policies | None = None, groupings: Sequence[Grouping] = (), **values: Any) -> ReportHeader:
    settings = values.pop("settings", None) or ReportSettings()
    plain: dict[str, Any] = {
        "title": "T",
        "benchmark": "b@1",
        "evaluations": ["eval_1"],
        "plan": "task@1",
        "notice": "",
        "agents": 0,
        "tasks": 0,
        "runs": 0,
    }
    return ReportHeader(
        **(plain | values), policies=policies or Policies(), groupings=list(groupings), settings=settings
    )


def named(tables: Sequence[ReportTable], name: str) -> ReportTable:
    return next(t for t in tables if t.name == name)


def row(table: ReportTable, **where: Any) -> dict[str, Any]:
    """Return the one row that has these cells."""
    (found,) = [r for r in table.rows if all(r[k] == v for k, v in where.items())]
    return found
