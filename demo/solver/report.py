"""What every solution ends with: answers, a short report in words, a workbook. Everything is written below one folder."""

import json
from pathlib import Path

import openpyxl


def say(text):
    """Print one line of progress at once."""
    print(text, flush=True)


def deliver(output, title, answers, findings, columns, rows):
    """Write answers.json, report.md and report.xlsx."""
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "answers.json").write_text(json.dumps(answers, indent=2) + "\n", encoding="utf-8")
    lines = [f"# {title}", "", *(f"- {finding}" for finding in findings), ""]
    (folder / "report.md").write_text("\n".join(lines), encoding="utf-8")
    book = openpyxl.Workbook()
    page = book.active
    page.title = title[:31]
    page.append(columns)
    for row in rows:
        page.append(row)
    book.save(folder / "report.xlsx")
    say(f"wrote {', '.join(sorted(p.name for p in folder.iterdir()))}")
