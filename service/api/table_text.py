"""Rows as text for downloads: JSON lines, or CSV that no spreadsheet takes for formulas."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of cells that spreadsheets take for formulas."""


def json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(f"{_json(row)}\n" for row in rows).encode()


def csv_lines(rows: Iterable[Sequence[Any]]) -> bytes:
    """RFC 4180 in UTF-8. Text that a spreadsheet would run begins with an apostrophe; what has parts is JSON."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _cell(value: Any) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return _json(value)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
