"""Sets of three items of every format, and twenty kinds of damage to the one in the middle.

``Shape.expect`` says what a kind costs: ``item`` (quarantined), ``nothing`` (still usable), or ``any`` of both, where it depends
on the machine or on how bad it is. The items beside it are always usable.
"""

import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import polars

Cost = Literal["item", "nothing", "any"]
FIRST, VICTIM, LAST = "first", "victim", "last"
SPARSE_BYTES = 10 << 30
DEEP = "[" * 100_000 + "]" * 100_000
HUGE = "1" + "0" * 400


@dataclass(frozen=True, slots=True)
class Folders:
    """A format with a folder per item."""

    name: str
    importer: str
    make: Callable[[Path, str], Path]
    """Writes a good item of this name below the root and returns its folder."""
    text: str
    data: str
    config: str | None = None
    """File with a number that can be spoiled; ``number`` is how it is written there."""
    number: str = ""
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    costs: Mapping[str, Cost] = field(default_factory=dict[str, Cost])
    """Where a kind costs this format something else."""

    def build(self, root: Path) -> Path:
        """Return the folder of the item to damage."""
        self.make(root, FIRST)
        victim = self.make(root, VICTIM)
        self.make(root, LAST)
        return victim

    def renumber(self, victim: Path, number: str) -> None:
        assert self.config is not None
        path = victim / self.config
        text = path.read_text()
        assert self.number in text
        path.write_text(text.replace(self.number, number))


FolderDamage = Callable[[Folders, Path], object]


def _replace(path: Path) -> Path:
    path.unlink()
    return path


def _links(shape: Folders, victim: Path) -> None:
    _replace(victim / shape.data).symlink_to("/etc/passwd")


def _sparse(shape: Folders, victim: Path) -> None:
    with (victim / shape.data).open("wb") as file:
        file.truncate(SPARSE_BYTES)


def _case(shape: Folders, victim: Path) -> None:
    data = victim / shape.data
    data.with_name(data.name.upper()).write_text("other")


def _file_for_folder(shape: Folders, victim: Path) -> None:
    folder = (victim / shape.data).parent
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
    folder.write_text("")


def _deep(shape: Folders, victim: Path) -> None:
    ((victim / shape.data).parent / "/".join("d" * 60)).mkdir(parents=True)


def _long(shape: Folders, victim: Path) -> None:
    # 5 times 250 bytes and a name: more than any path of a task has.
    folder = (victim / shape.data).parent / "/".join("n" * 250 for _ in range(4))
    folder.mkdir(parents=True)
    (folder / ("f" * 250)).write_text("")


def _special(shape: Folders, victim: Path) -> None:
    folder = (victim / shape.data).parent
    os.mkfifo(folder / "pipe.csv")
    here = Path.cwd()
    os.chdir(folder)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("socket.csv")
    finally:
        os.chdir(here)


def _truncated(shape: Folders, victim: Path) -> None:
    assert shape.config is not None
    path = victim / shape.config
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


FOLDER_DAMAGE: Mapping[str, tuple[FolderDamage, Cost]] = {
    "missing_file": (lambda s, v: (v / s.text).unlink(), "item"),
    "nan": (lambda s, v: s.renumber(v, "NaN" if (s.config or "").endswith("json") else "nan"), "any"),
    "infinity": (lambda s, v: s.renumber(v, "Infinity" if (s.config or "").endswith("json") else "inf"), "any"),
    "huge_number": (lambda s, v: s.renumber(v, HUGE), "any"),
    "negative_number": (lambda s, v: s.renumber(v, "-5"), "any"),
    "truncated": (_truncated, "any"),
    "symlink": (_links, "item"),
    "empty_instruction": (lambda s, v: (v / s.text).write_text(" \n\t"), "item"),
    "sparse_file": (_sparse, "item"),
    "wrong_encoding": (lambda s, v: (v / s.text).write_bytes("Größe".encode("utf-16")), "item"),
    "nul": (lambda s, v: (v / s.text).write_text("a\0b"), "any"),
    "controls": (lambda s, v: (v / s.text).write_text("a\x1b[31mb\x07\u202ec"), "nothing"),
    "traversing_name": (lambda s, v: (v / s.data).with_name("..\\..\\x.csv").write_text(""), "item"),
    "case_clash": (_case, "nothing"),
    "file_for_folder": (_file_for_folder, "any"),
    "deep_nesting": (_deep, "any"),
    "huge_text": (lambda s, v: (v / s.text).write_text("x" * 3_000_000), "item"),
    "unreadable": (lambda s, v: (v / s.data).chmod(0), "any"),
    "special_files": (_special, "item"),
    "long_names": (_long, "item"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rows:
    """A format with a row per item, in a file of this name."""

    name: str
    importer: str
    file: str
    row: Callable[[str], dict[str, Any]]
    id: tuple[str | int, ...]
    text: tuple[str | int, ...]
    number: tuple[str | int, ...] | None = None
    files: tuple[str | int, ...] | None = None
    """Field with a list of paths of files; each row has one, ``files/<item>.csv``."""
    weights: Callable[[dict[str, Any]], None] | None = None
    """Sets all weights of a row to 0."""
    currency: tuple[str | int, ...] | None = None

    def build(self, root: Path) -> list[dict[str, Any]]:
        (root / "files").mkdir()
        for name in (FIRST, VICTIM, LAST):
            (root / f"files/{name}.csv").write_text(name)
        return [self.row(name) for name in (FIRST, VICTIM, LAST)]

    def write(self, root: Path, rows: list[dict[str, Any]]) -> Path:
        path = root / self.file
        if path.suffix == ".parquet":
            polars.DataFrame(rows, infer_schema_length=None, strict=False).write_parquet(path)
        elif path.suffix == ".jsonl":
            path.write_text("\n".join(map(json.dumps, rows)) + "\n")
        elif path.suffix == ".csv":
            path.write_text("".join(map(_csv_line, [list(rows[0]), *(list(row.values()) for row in rows)])))
        else:
            path.write_text(json.dumps(rows, indent=1))
        return path


def _csv_line(cells: list[Any]) -> str:
    return ",".join('"' + _cell(cell).replace('"', '""') + '"' for cell in cells) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ";".join(map(str, cast("list[Any]", value)))
    return str(value)


def put(row: Any, where: tuple[str | int, ...], value: Any) -> None:
    for step in where[:-1]:
        row = row[step]
    row[where[-1]] = value


def get(row: Any, where: tuple[str | int, ...]) -> Any:
    for step in where:
        row = row[step]
    return row


RowDamage = Callable[[Rows, dict[str, Any], Path], None]


def _file(root: Path) -> Path:
    return root / f"files/{VICTIM}.csv"


def _row_sparse(_shape: Rows, _row: dict[str, Any], root: Path) -> None:
    with _file(root).open("wb") as file:
        file.truncate(SPARSE_BYTES)


def _row_link(_shape: Rows, _row: dict[str, Any], root: Path) -> None:
    _replace(_file(root)).symlink_to("/etc/passwd")


def _row_unreadable(_shape: Rows, _row: dict[str, Any], root: Path) -> None:
    _file(root).chmod(0)


def _row_pipe(_shape: Rows, _row: dict[str, Any], root: Path) -> None:
    os.mkfifo(_replace(_file(root)))


def _row_folder(_shape: Rows, _row: dict[str, Any], root: Path) -> None:
    _replace(_file(root)).mkdir()


def _row_case(shape: Rows, row: dict[str, Any], root: Path) -> None:
    (root / "files/VICTIM.csv").write_text("other")
    _files(shape, row, [*get(row, shape.files or ()), "files/VICTIM.csv"])


def _files(shape: Rows, row: dict[str, Any], paths: list[str]) -> None:
    assert shape.files is not None
    put(row, shape.files, paths)


def _number(value: Any) -> RowDamage:
    def damage(shape: Rows, row: dict[str, Any], _root: Path) -> None:
        assert shape.number is not None
        put(row, shape.number, value)

    return damage


def _text(value: str) -> RowDamage:
    return lambda shape, row, _root: put(row, shape.text, value)


def _identity(value: Any) -> RowDamage:
    return lambda shape, row, _root: put(row, shape.id, value)


def _weights(shape: Rows, row: dict[str, Any], _root: Path) -> None:
    assert shape.weights is not None
    shape.weights(row)


def _currency(shape: Rows, row: dict[str, Any], _root: Path) -> None:
    assert shape.currency is not None
    put(row, shape.currency, "doubloons")


def _same_id(shape: Rows, row: dict[str, Any], _root: Path) -> None:
    put(row, shape.id, get(shape.row(FIRST), shape.id))


ROW_DAMAGE: Mapping[str, tuple[RowDamage, Cost]] = {
    "missing_file": (lambda s, r, _: _files(s, r, ["files/gone.csv"]), "item"),
    "nan": (_number(float("nan")), "any"),
    "infinity": (_number(float("inf")), "any"),
    "huge_number": (_number(10**400), "any"),
    "duplicate_ids": (_same_id, "item"),
    "symlink": (_row_link, "item"),
    "empty_instruction": (_text(" \n"), "item"),
    "zero_weights": (_weights, "item"),
    "unknown_currency": (_currency, "any"),
    "sparse_file": (_row_sparse, "item"),
    "nul": (_text("a\0b"), "item"),
    "surrogate": (_text("a\ud800b"), "item"),
    "controls": (_text("a\x1b[31mb\x07\u202ec " * 40), "nothing"),
    "traversal": (lambda s, r, _: _files(s, r, ["../../../../etc/passwd"]), "item"),
    "absolute_path": (lambda s, r, _: _files(s, r, ["/etc/passwd"]), "item"),
    "case_clash": (_row_case, "nothing"),
    "file_for_folder": (_row_folder, "item"),
    "special_file": (_row_pipe, "item"),
    "unreadable": (_row_unreadable, "any"),
    "long_names": (lambda s, r, _: _files(s, r, ["n" * 300, "/".join("d" * 600)]), "item"),
    "huge_text": (_text("x" * 3_000_000), "any"),
    "no_id": (_identity(None), "any"),
    "id_true": (_identity(True), "any"),
    "id_list": (_identity([1]), "any"),
    "id_object": (_identity({"a": 1}), "any"),
    "id_odd": (_identity("../../a b\u202e/\x1b"), "nothing"),
    "id_long": (_identity("n" * 100_000), "any"),
}  # fmt: skip
FILE_KINDS = frozenset(
    {
        *("missing_file", "symlink", "sparse_file", "traversal", "absolute_path", "case_clash", "file_for_folder"),
        *("special_file", "unreadable", "long_names"),
    }
)
UNTYPED = frozenset(
    {"case_clash", "id_true", "id_list", "id_object", "huge_number", "nul", "surrogate", "nan", "infinity", "id_long"}
)
"""What a CSV cell cannot hold, or holds as something else (a list of files needs a mapping)."""
PARQUET_KINDS = frozenset({"missing_file", "duplicate_ids", "empty_instruction", "zero_weights", "traversal", "nan"})
"""Each takes a process; the rows are the same ones behind it."""


def applies(shape: Rows, kind: str) -> bool:
    """Tell whether a row of this format can be damaged so."""
    needs: Mapping[str, Any] = {
        **dict.fromkeys(FILE_KINDS, shape.files),
        **dict.fromkeys(("nan", "infinity", "huge_number"), shape.number),
        "zero_weights": shape.weights,
        "unknown_currency": shape.currency,
    }
    if kind in needs and needs[kind] is None:
        return False
    if shape.file.endswith(".parquet"):
        return kind in PARQUET_KINDS
    return not (kind in UNTYPED and shape.file.endswith(".csv"))
