#!/usr/bin/env python3
"""Check an export of results: every file against the manifest, every figure against the tables.

    python verify.py [FOLDER]

Python 3.9 or newer and its standard library are enough; with numpy the intervals are computed again too. It shares no code with
the service that made the export. Exit status: 0 all that was checked agrees, 1 something differs, 2 this is no export.
"""

import csv
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, cast

Row = dict[str, Any]
Tables = dict[str, list[Row]]
csv.field_size_limit(1 << 30)
GUARDED = re.compile(r"'+[=+\-@\t\r]")
PART = re.compile(r"\.c\d+$")


# --- reading ----------------------------------------------------------------------------------------------------------
def digests(folder: Path, manifest: Row) -> Iterator[str]:
    """Yield what differs between the files and the manifest."""
    listed = {entry["path"]: entry for entry in manifest["files"]}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for path in sorted(there - set(listed) - {"manifest.json"}):
        yield f"file {path}: not in the manifest"
    for path, entry in sorted(listed.items()):
        if path not in there:
            yield f"file {path}: missing"
        elif hashlib.sha256((folder / path).read_bytes()).hexdigest() != entry["sha256"]:
            yield f"file {path}: is not what the manifest says"


def read_table(folder: Path, table: Row) -> list[Row]:
    """Return the rows of a table's CSV with the types of the dictionary."""
    kinds = {column["name"]: column["type"] for column in table["columns"]}
    with (folder / "tables" / f"{table['name']}.csv").open(newline="", encoding="utf-8") as file:
        return [{name: value_of(text, kinds[name]) for name, text in row.items()} for row in csv.DictReader(file)]


def value_of(text: str, kind: str) -> Any:
    if text == "":
        return None
    if kind == "integer":
        return int(text)
    if kind == "number":
        return float(text)
    if kind == "boolean":
        return text == "true"
    if kind == "json":
        return json.loads(text)
    if kind == "time":
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    return text[1:] if GUARDED.match(text) else text


class Data:
    """The tables with the report's choices applied."""

    def __init__(self, tables: Tables, report: Row) -> None:
        self.tables = tables
        self.header: Row = report["header"]
        self.settings: Row = self.header["settings"]
        self.policies: Row = self.header["policies"]
        self.seed: int = self.header["seed"] if self.settings["seed"] is None else self.settings["seed"]
        self.draws: int = self.settings["draws"]
        # A work that is as good as the reference counts half, and a client accepts it.
        self.passes_at = 0.5 if report["kind"] == "rli" else 1.0
        self.missing: str = self.settings["missing"] or self.policies["missing"]
        self.tasks = {row["task_id"]: row for row in tables["tasks"]}
        work = [row for row in tables["runs"] if row["exclusion"] not in ("control", "preflight")]
        self.runs = [self._chosen(dict(row)) for row in sorted(work, key=lambda row: row["run_id"])]
        used = {run["agent_id"] for run in self.runs}
        agents = sorted(tables["agents"], key=lambda row: (row["label"], row["agent_id"]))
        self.agents = {row["agent_id"]: row for row in agents if row["agent_id"] in used}
        self.counted = [run for run in self.runs if run["counted"] is not None]
        self.by_agent = {a: [run for run in self.counted if run["agent_id"] == a] for a in self.agents}
        self.attempted = sorted({run["task_id"] for run in self.runs})
        self.excluded = Counter(run["exclusion"] or "unknown" for run in self.runs if run["counted"] is None)
        self.criteria: dict[str, list[Row]] = defaultdict(list)
        for row in tables["criteria"]:
            self.criteria[row["grading_id"]].append(row)
        self.standing = self.gradings()

    def _chosen(self, run: Row) -> Row:
        if run["counted"] is not None:
            suspected = "contamination_suspected" in (run["flags"] or [])
            disputed = self.tasks[run["task_id"]]["status"] == "disputed"
            if self.settings["contaminated"] == "exclude" and suspected:
                run.update(counted=None, exclusion="contaminated")
            elif self.settings["disputed"] == "exclude" and disputed:
                run.update(counted=None, exclusion="disputed")
        cost = run["cost_usd"]
        run["spent"] = None if cost is None else cost + (run["service_cost_usd"] or 0.0)
        run["solved"] = run["counted"] is not None and run["counted"] >= self.passes_at
        return run

    def gradings(self, plan: Any = None) -> list[Row]:
        """The gradings behind the scores: graded, primary, each method's last round; of the run's own plan, or of ``plan``."""
        plans = {run["run_id"]: run["plan"] for run in self.tables["runs"]}
        mine = [
            v
            for v in self.tables["verdicts"]
            if v["state"] == "graded" and v["primary"] and _is_of(v["plan"], plan or plans.get(v["run_id"]))
        ]
        last: dict[tuple[str, str, str], int] = {}
        for v in mine:
            key = (v["run_id"], v["method"], v["settings_digest"])
            last[key] = max(v["round"], last.get(key, 0))
        return [v for v in mine if v["round"] == last[v["run_id"], v["method"], v["settings_digest"]]]

    def items(self, method: Any = None) -> list[Row]:
        return [row for v in self.standing if method in (None, v["method"]) for row in self.criteria[v["grading_id"]]]

    def facet(self, task: str, name: str) -> list[Any]:
        value: Any = self.tasks[task]["facets"].get(name)
        if value is None:
            return []
        if isinstance(value, list):
            return cast(list[Any], value)
        return [value if isinstance(value, str) else f"{value:g}"]

    def table(self, rows: list[Row], n: Any = None, excluded: Any = None) -> Row:
        left: dict[str, int] = self.excluded if excluded is None else excluded
        return {
            "rows": rows,
            "n": len(self.counted) if n is None else n,
            "excluded": {k: v for k, v in left.items() if v},
        }


def _is_of(plan: str, wanted: Any) -> bool:
    """Whether a grading's plan, name@version, is the wanted one, or one of its versions."""
    return wanted is not None and (plan == wanted if "@" in wanted else plan.startswith(f"{wanted}@"))
