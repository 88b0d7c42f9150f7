"""Reading what the tasks bring."""

import csv
import re
import subprocess
from pathlib import Path


def pdf_text(path: Path) -> str:
    """Return a PDF's text with its layout kept."""
    command = ["pdftotext", "-layout", "-enc", "UTF-8", str(path), "-"]
    return subprocess.run(command, check=True, capture_output=True, timeout=60).stdout.decode("utf-8")


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Return a CSV file's rows as dictionaries."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text: str) -> float:
    """Return the number that ``text`` writes with thousands separators."""
    return float(text.replace(",", ""))


def find(pattern: str, text: str) -> str:
    """Return what the pattern's first group matches; end the program where nothing does."""
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise SystemExit(f"nothing fits {pattern!r}")
    return match[1]
