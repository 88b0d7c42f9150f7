"""Text and what is written in it: json, jsonl, csv, notebooks, Python, html."""

import ast
import codecs
import csv
import io
import json
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

from service.evidence.integrity.checker.findings import MIB, Seen, Trouble

MAX_BYTES = 64 * MIB
MAX_CELL = MIB
MAX_PYTHON = 2 * MIB
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_DELIMITERS = ",;\t|"


def text_of(path: Path) -> tuple[str, str]:
    """Return (text, encoding). What is not UTF-8 is taken byte by byte, as ``8-bit``. Raises Trouble."""
    if path.stat().st_size > MAX_BYTES:
        raise Trouble("too_large_to_check", f"more than {MAX_BYTES >> 20} MiB of text")
    data = path.read_bytes()
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    if encoding != "utf-16" and b"\x00" in data:
        raise Trouble("type_mismatch", "bytes that no text has")
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError as error:
        if encoding == "utf-16":
            raise Trouble("cannot_open", "not UTF-16 although it says so") from error
        return data.decode("latin-1"), "8-bit"


def read_text(path: Path, _: str) -> Seen:
    text, encoding = text_of(path)
    return Seen({"rows": text.count("\n") + (not text.endswith("\n")), "encoding": encoding})


def read_html(path: Path, _: str) -> Seen:
    """Readers take any text as HTML, so what can be wrong is its bytes."""
    text, encoding = text_of(path)
    HTMLParser().feed(text[: 16 * MIB])
    return Seen({"encoding": encoding})


def read_json(path: Path, _: str) -> Seen:
    value, encoding = _parsed(path)
    many: dict[str, int | float | str] = (
        {"entries": len(cast("list[Any]", value))} if isinstance(value, list | dict) else {}
    )
    return Seen({**many, "encoding": encoding})


def read_jsonl(path: Path, _: str) -> Seen:
    text, encoding = text_of(path)
    rows = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            _loads(line, f"line {number}: ")
            rows += 1
    return Seen({"rows": rows, "encoding": encoding})


def read_notebook(path: Path, _: str) -> Seen:
    value, _encoding = _parsed(path)
    cells: object = cast("dict[str, object]", value).get("cells") if isinstance(value, dict) else None
    if not isinstance(cells, list):
        raise Trouble("cannot_open", "no cells")
    return Seen({"entries": len(cast("list[object]", cells))})


def read_csv(path: Path, kind: str) -> Seen:
    text, encoding = text_of(path)
    csv.field_size_limit(MAX_CELL)
    first = text.lstrip("\r\n").partition("\n")[0]
    delimiter = "\t" if kind == "tsv" else max(_DELIMITERS, key=first.count)
    widths: Counter[int] = Counter()
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                widths[len(row)] += 1
    except csv.Error as error:
        raise Trouble("cannot_open", str(error)) from error
    if not widths:
        raise Trouble("empty", "no row")
    width, most = widths.most_common(1)[0]
    seen = Seen({"rows": widths.total(), "columns": width, "encoding": encoding})
    if len(widths) > 1:
        other = widths.total() - most
        seen.problems.append(("malformed", f"{other} of {widths.total()} rows have not {width} columns"))
    return seen


def read_python(path: Path, _: str) -> Seen:
    text, encoding = text_of(path)
    seen = Seen({"rows": text.count("\n"), "encoding": encoding})
    if len(text) > MAX_PYTHON:
        return seen
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        seen.problems.append(("malformed", f"Python 3.11 does not parse it: {error}"))
    return seen


def _parsed(path: Path) -> tuple[object, str]:
    text, encoding = text_of(path)
    return _loads(text.removeprefix("\ufeff")), encoding


def _loads(text: str, where: str = "") -> object:
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        late = error.pos >= len(text.rstrip())
        raise Trouble("truncated" if late else "cannot_open", f"{where}{error}") from error
    except RecursionError as error:
        raise Trouble("bomb", f"{where}nested too deep for any reader") from error
    except ValueError as error:
        raise Trouble("cannot_open", f"{where}{error}") from error


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
