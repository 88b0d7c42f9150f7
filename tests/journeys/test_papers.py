"""One command per benchmark: from its folder to its report, whose figures its own verifier computes again."""

import csv
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BEST = {
    "jobbench": "desk-right@1",
    "rli": "works-right@1",
    "payworthy": "works-right@1",
    "freelance": "freelance-right@1",
}
MAIN = {
    "jobbench": ("jobbench_scores", "macro"),
    "rli": ("automation_rate", "rate"),
    "payworthy": ("acceptance", "accepted"),
    "freelance": ("freelance_results", "success_rate"),
}
"""Kind → its main table, and the figure in which the good solver is ahead."""
Report = dict[str, Any]


def shown(name: str, folder: Path) -> Report:
    done = subprocess.run(
        [sys.executable, "-m", "demo.benchmarks.papers", name, "-o", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no process, container, volume, mount or loop device is left" in done.stdout
    verified = (folder / name / "verified.txt").read_text()
    assert "all that was checked agrees" in verified
    assert not any(word in verified for word in ("not recomputed", "skipped", "DIFFERS"))
    assert (folder / name / "report/report.html").read_text().startswith("<!doctype html>")
    report: Report = json.loads((folder / name / "report/report.json").read_text())
    return report


def leads(name: str, report: Report) -> bool:
    """Tell whether the good solver is behind nobody in the paper's main figure, and ahead of somebody."""
    table_name, figure = MAIN[name]
    (table,) = [one for one in report["tables"] if one["name"] == table_name]
    found = {str(row["agent"]): row[figure] for row in reversed(table["rows"])}
    best = found.pop(BEST[name])
    return best > 0 and best >= max(found.values()) and best > min(found.values())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_freelance_from_its_file_to_its_report(tmp_path: Path) -> None:
    assert leads("freelance", shown("freelance", tmp_path / "out"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["jobbench", "payworthy"])
def test_each_benchmark_from_its_folder_to_its_report(name: str, tmp_path: Path) -> None:
    assert leads(name, shown(name, tmp_path / "out"))


def accepted_by_people(folder: Path) -> Counter[str]:
    """Return by agent how many of its works most raters accepted, from an export's ratings."""
    tables: dict[str, list[dict[str, str]]] = {}
    for name in ("agents", "runs", "ratings"):
        with (folder / f"tables/{name}.csv").open(newline="") as file:
            tables[name] = list(csv.DictReader(file))
    labels = {row["agent_id"]: row["label"] for row in tables["agents"]}
    votes: dict[str, list[bool]] = {row["run_id"]: [] for row in tables["runs"]}
    for row in tables["ratings"]:
        if (row["form"], row["purpose"]) == ("human_panel", "rating"):
            votes[row["run_id"]].append(row["accept"] == "true")
    assert all(len(found) >= 2 for found in votes.values())
    found: Counter[str] = Counter()
    for run in tables["runs"]:
        said = votes[run["run_id"]]
        found[labels[run["agent_id"]]] += 2 * sum(said) > len(said)
    return found


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_people_said_of_projects_is_in_the_report(tmp_path: Path) -> None:
    report = shown("rli", tmp_path / "out")
    assert leads("rli", report)
    (table,) = [one for one in report["tables"] if one["name"] == "automation_rate"]
    said = {row["agent"]: row["accepted"] for row in table["rows"]}
    assert said == accepted_by_people(tmp_path / "out/rli")
    assert set(said.values()) == {0, 1, 2, 6}
