"""Reading what the tasks bring."""

import csv
import subprocess


def pdf_text(path):
    """Return a PDF's text with its layout kept."""
    command = ["pdftotext", "-layout", "-enc", "UTF-8", str(path), "-"]
    return subprocess.run(command, check=True, capture_output=True, timeout=60).stdout.decode("utf-8")


def csv_rows(path):
    """Return a CSV file's rows as dictionaries."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text):
    """Return the number that ``text`` writes with thousands separators."""
    return float(text.replace(",", ""))
