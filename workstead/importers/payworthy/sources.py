"""Postings as rows: a table (CSV, JSON, JSONL), or a folder per item, whose files are then the columns.

The row of a folder has ``folder`` (its name), each ``*.json`` at its top as a parsed value and each ``*.md`` and ``*.txt`` as a
text, under the file's name: a pointer such as ``/posting.json/title`` finds what it needs.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workstead.importers.files import Contents, Entry, is_folder, name_trouble
from workstead.importers.tables import read_rows
from workstead.importers.untrusted import read_json
from workstead.task_dir import InvalidInput, read_text

MAX_RECORD_BYTES = 16 << 20
MAX_RECORDS = 100
"""Files at the top of an item's folder that are read."""


@dataclass(frozen=True, slots=True)
class Row:
    """One posting as it lies in the source; ``values`` is null where it cannot be read, and ``trouble`` says why."""

    name: str
    base: Path
    """What paths within the row are relative to."""
    values: Mapping[str, Any] | None
    trouble: str = ""


def read_source(source: Path, pointer: str, files: Path | None, notes: list[str], contents: Contents) -> Iterator[Row]:
    """Yield every posting. Raises InvalidInput if the source has none or is nothing of the kind, OSError."""
    if is_folder(source):
        yield from _folders(source, notes, contents)
        return
    base = files or source.parent
    rows = read_rows(source, pointer)
    contents.take(Entry(source.name, source), source.name, source.parent)
    for row in rows:
        yield Row(row.name, base, row.values, row.trouble)


def _folders(source: Path, notes: list[str], contents: Contents) -> Iterator[Row]:
    found = False
    for path in sorted(Path(entry.path) for entry in os.scandir(source)):
        if path.name.startswith(".") or not (path.is_symlink() or path.is_dir()):
            notes.append(f"{path.name}: is no folder of an item; not read")
            continue
        found = True
        yield _folder(path, source, contents)
    if not found:
        raise InvalidInput(source, ["has no folder; expected one per item, or a file of rows"])


def _folder(path: Path, root: Path, contents: Contents) -> Row:
    if path.is_symlink() or name_trouble(path.name):
        return Row(path.name, path, None, "is a symbolic link, or has an odd name")
    values: dict[str, Any] = {"folder": path.name}
    try:
        for file in _records(path):
            values[file.name] = _record(file)
            contents.take(Entry(file.name, file), file.name, root)
    except InvalidInput as error:
        return Row(path.name, path, None, f"{error.where.name}: {'; '.join(error.problems)}")
    except OSError as error:
        return Row(path.name, path, None, f"{Path(str(error.filename or '')).name}: {error.strerror or error}")
    return Row(path.name, path, values)


def _records(folder: Path) -> list[Path]:
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in {".json", ".md", ".txt"} and not p.is_dir())
    if len(files) > MAX_RECORDS:
        raise InvalidInput(folder, [f"has more than {MAX_RECORDS} files at its top"])
    return files


def _record(file: Path) -> Any:
    if name_trouble(file.name) or file.is_symlink() or not file.is_file():
        raise InvalidInput(file, ["is not a regular file, or has an odd name"])
    if file.suffix.lower() == ".json":
        return read_json(file, MAX_RECORD_BYTES)
    problems: list[str] = []
    text = read_text(file, file.name, problems)
    if problems:
        raise InvalidInput(file, [problem.removeprefix(f"{file.name}: ") for problem in problems])
    return text
