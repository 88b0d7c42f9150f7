"""What every solution ends with: answers, a short report in words, a workbook. Everything is written below one folder."""

import json
import sys
from pathlib import Path
from typing import Any

import openpyxl


def say(text: str) -> None:
    """Print one line of progress at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def deliver(
    output: Path,
    title: str,
    answers: dict[str, Any],
    findings: list[str],
    columns: list[str],
    rows: list[list[Any]],
) -> None:
    """Write answers.json, report.md and report.xlsx."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "answers.json").write_text(json.dumps(answers, indent=2) + "\n", encoding="utf-8")
    lines = [f"# {title}", "", *(f"- {finding}" for finding in findings), ""]
    (output / "report.md").write_text("\n".join(lines), encoding="utf-8")
    book = openpyxl.Workbook()
    page: Any = book.active
    page.title = title[:31]
    page.append(columns)
    for row in rows:
        page.append(row)
    book.save(output / "report.xlsx")
    say(f"wrote {', '.join(sorted(p.name for p in output.iterdir()))}")
