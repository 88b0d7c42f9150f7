"""``workstead demo`` as a user types it: right verdicts, deliverables on disk, nothing left behind."""

import os
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest

WORKSTEAD = Path(sys.executable).with_name("workstead")
SLICES = (
    ("Scores by category", "desk-right@1", "desk-partial@1"),
    ("Automation rate", "works-right@1", "works-partial@1"),
    ("Acceptance", "works-right@1", "works-partial@1"),
    ("Results", "freelance-right@1", "freelance-wrong@1"),
)
"""Title of each benchmark's first table, an agent that does well and one that does not."""


@pytest.mark.timeout(600)
def test_demo_ends_as_it_should_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [WORKSTEAD, "demo", "--output", tmp_path / "out"], env={**os.environ, "COLUMNS": "200"},
        capture_output=True, text=True, timeout=580, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    for said in ("read orders.xlsx: 6 orders", "Verdicts", "3/3", "0/3", "is left", "as expected"):
        assert said in done.stdout
    assert done.stdout.count("deliverable.checked 3 files looked at, none with problems") == 9
    assert done.stdout.count("deliverable.checked") == 15
    assert not [line for line in done.stdout.splitlines() if '{"type"' in line or " loop.step " in line]
    folders = [p for p in (tmp_path / "out").iterdir() if p.is_dir() and p.name != "benchmarks"]
    assert len(folders) == 12
    for folder in folders:
        assert (folder / "output/answers.json").is_file()
        assert (folder / "output/report.md").is_file()
    books = list((tmp_path / "out").glob("*solver*/output/report.xlsx"))
    assert len(books) == 3
    assert all(openpyxl.load_workbook(book).worksheets[0].max_row > 1 for book in books)
    slices = done.stdout.split("A slice of each benchmark")[1]
    for title, best, worse in SLICES:
        rows = slices.split(f"\n{title}\n")[1].split("left out: none")[0].splitlines()
        figures = [row for agent in (best, worse) for row in rows if agent in row]
        assert len(figures) >= 2, (title, rows)
        good, bad = next(row for row in figures if best in row), next(row for row in figures if worse in row)
        assert "100.0 %" in good or "66.7 %" in good, (title, good)
        assert "100.0 % [" not in bad, (title, bad)
