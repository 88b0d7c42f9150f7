"""Rows of a CSV, JSON or JSONL file that nobody has checked: one that cannot be read costs itself, not the others."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

from workstead.importers.mapping import find
from workstead.importers.untrusted import MAX_JSON_BYTES, Broken, parse_json, read_elements, read_json
from workstead.task_dir import InvalidInput

MAX_ROWS = 20_000
MAX_ROW_BYTES = 16 << 20
MAX_COLUMNS = 4_096
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """``values`` is null where the row cannot be read, and ``trouble`` says why."""

    number: int
    """From 1; the header of a CSV file is none."""
    values: Values | None
    trouble: str = ""

    @property
    def name(self) -> str:
        return f"row {self.number}"


def read_rows(path: Path, pointer: str = "") -> Iterator[Row]:
    """Yield the rows of a file by its suffix (.csv, .tsv, .json, .jsonl); ``pointer`` is where a JSON file has its list.

    Raises InvalidInput if the file is none of them, has no rows at all, or more than MAX_ROWS; OSError.
    """
    readers = {".csv": _csv, ".tsv": _csv, ".jsonl": _jsonl, ".ndjson": _jsonl, ".json": _json}
    reader = readers.get(path.suffix.lower())
    if reader is None or not path.is_file():
        raise InvalidInput(path, [f"is not a file of one of these kinds: {', '.join(sorted(readers))}"])
    if path.stat().st_size > MAX_JSON_BYTES:
        raise InvalidInput(path, [f"is longer than {MAX_JSON_BYTES} bytes"])
    return _counted(path, reader(path, pointer))


def _counted(path: Path, rows: Iterator[tuple[Values | None, str]]) -> Iterator[Row]:
    first = next(rows, None)
    if first is None:
        raise InvalidInput(path, ["has no rows"])
    return _numbered(path, chain([first], rows))


def _numbered(path: Path, rows: Iterator[tuple[Values | None, str]]) -> Iterator[Row]:
    for number, (values, trouble) in enumerate(rows, 1):
        if number > MAX_ROWS:
            raise InvalidInput(path, [f"has more than {MAX_ROWS} rows"])
        yield Row(number, values, trouble)


def _json(path: Path, pointer: str) -> Iterator[tuple[Values | None, str]]:
    value = read_json(path) if pointer else read_elements(path)
    rows = find(value, pointer) if pointer else value
    if not isinstance(rows, list):
        raise InvalidInput(path, [f"has no list at {pointer or 'its top'}"])
    yield from (_object(row) for row in cast("list[Any]", rows))


def _jsonl(path: Path, _pointer: str) -> Iterator[tuple[Values | None, str]]:
    with path.open("rb") as file:
        if file.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InvalidInput(path, ["is UTF-16; only UTF-8 is read"])
        while line := file.readline(MAX_ROW_BYTES + 1):
            if len(line) > MAX_ROW_BYTES:
                _skip_line(file, line)
                yield None, f"is longer than {MAX_ROW_BYTES} bytes"
            elif line.strip():
                yield _parsed(line)


def _skip_line(file: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = file.readline(MAX_ROW_BYTES)


def _parsed(line: bytes) -> tuple[Values | None, str]:
    try:
        return _object(parse_json(line))
    except (ValueError, RecursionError) as error:
        return None, f"is not JSON: {error}"


def _object(value: Any) -> tuple[Values | None, str]:
    if isinstance(value, Broken):
        return None, f"is not JSON: {value.why}"
    return (cast("Values", value), "") if isinstance(value, dict) else (None, "is no object")


def _csv(path: Path, _pointer: str) -> Iterator[tuple[Values | None, str]]:
    csv.field_size_limit(MAX_ROW_BYTES)
    # What is not UTF-8 costs its own row: it stays visible as a lone surrogate.
    with path.open("rb") as raw, TextIOWrapper(raw, "utf-8-sig", "surrogateescape", newline="") as text:
        rows = csv.reader(text, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
        header = _header(path, rows)
        while True:
            try:
                cells = next(rows, None)
            except csv.Error as error:
                yield None, f"is not CSV: {error}"
                continue
            if cells is None:
                return
            if cells:
                yield _record(header, cells)


def _header(path: Path, rows: Iterator[list[str]]) -> list[str]:
    try:
        header = [name.strip() for name in next(rows, list[str]())]
    except csv.Error as error:
        raise InvalidInput(path, [f"is not CSV: {error}"]) from error
    if not 0 < len(header) <= MAX_COLUMNS or not _is_utf8("".join(header)) or "\0" in "".join(header):
        raise InvalidInput(path, [f"its first line is not the names of 1 to {MAX_COLUMNS} columns in UTF-8"])
    if len(set(header)) != len(header):
        raise InvalidInput(path, ["two columns have the same name"])
    return header


def _record(header: list[str], cells: list[str]) -> tuple[Values | None, str]:
    if len(cells) != len(header):
        return None, f"has {len(cells)} cells; the header has {len(header)}"
    if not all(map(_is_utf8, cells)):
        return None, "is not UTF-8"
    return dict(zip(header, cells, strict=True)), ""


def _is_utf8(text: str) -> bool:
    return not any(0xD800 <= ord(c) <= 0xDFFF for c in text)
