"""One command per benchmark: from its folder to its report, whose figures its own verifier computes again."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from demo.benchmarks.papers import PAPERS

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
    assert "all that was checked agrees" in (folder / name / "verified.txt").read_text()
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


@pytest.mark.timeout(900)
def test_freelance_from_its_file_to_its_report(tmp_path: Path) -> None:
    assert leads("freelance", shown("freelance", tmp_path / "out"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [name for name in PAPERS if name != "freelance"])
def test_each_benchmark_from_its_folder_to_its_report(name: str, tmp_path: Path) -> None:
    assert leads(name, shown(name, tmp_path / "out"))
