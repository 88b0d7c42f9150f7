"""Every format with twenty kinds of damage: a report, no crash, nothing valid lost, in bounded time and memory."""

import json
import time
import tracemalloc
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.unit.workstead.importers.damage import (
    DEEP,
    FIRST,
    FOLDER_DAMAGE,
    LAST,
    ROW_DAMAGE,
    VICTIM,
    Cost,
    Folders,
    Rows,
    applies,
)
from tests.unit.workstead.importers.harbor.test_importer import add as add_harbor
from tests.unit.workstead.importers.jobbench.test_importer import add_task as add_jobbench
from tests.unit.workstead.importers.payworthy.test_importer import posting
from tests.unit.workstead.importers.rli.test_importer import add as add_rli
from tests.unit.workstead.importers.sets import checked, read
from workstead.cli.importing import validation
from workstead.importers.contract import Imported
from workstead.task_dir import InvalidInput

MAX_S, MAX_HEAP_BYTES = 20.0, 256 << 20
# Each starts a program that loads polars; the importers' own half is the same for all kinds of files.
PROGRAM = {".parquet": [pytest.mark.longer]}
NUMBERS = {FIRST: 1, VICTIM: 2, LAST: 3}


def _jobbench(root: Path, name: str) -> Path:
    folder = add_jobbench(root, f"dataset/clerks/task{NUMBERS[name]}")
    (folder / "files_required_to_search").mkdir()
    (folder / "files_required_to_search/a.csv").write_text("1")
    return folder


def _rli(root: Path, name: str) -> Path:
    return add_rli(root, f"public_00{NUMBERS[name]}", {"total_project_cost": 200, "human_completion_hours": 3})


def _payworthy(root: Path, name: str) -> Path:
    folder = root / name
    (folder / "deliverable").mkdir(parents=True)
    told = posting(item_id=name)
    (folder / "posting.md").write_text(told.pop("description"))
    (folder / "metadata.json").write_text(json.dumps(told))
    (folder / "deliverable/work.csv").write_text(name)
    return folder


# What a solver delivered is no part of the posting, and costs itself only; a short text is no posting.
WORKS_ONLY: dict[str, Cost] = {
    **dict.fromkeys(("symlink", "sparse_file", "traversing_name", "special_files", "long_names"), "nothing"),
    "controls": "item",
}
FOLDERS = [
    Folders("jobbench", "jobbench", _jobbench, "task_folder/TASK_INSTRUCTIONS.txt", "task_folder/sub/a b.csv", "RUBRICS.json", "10"),
    Folders("rli", "rli", _rli, "project/brief.md", "project/inputs/logo.svg", "project/metadata.json", "200"),
    Folders("payworthy", "payworthy", _payworthy, "posting.md", "deliverable/work.csv", "metadata.json", "100", costs=WORKS_ONLY),
    Folders("harbor", "harbor", add_harbor, "instruction.md", "tests/check.py", "task.toml", "900.0"),
]  # fmt: skip


def _gdpval(name: str) -> dict[str, Any]:
    return {
        "task_id": name, "sector": "s", "occupation": "o", "prompt": f"Do {name}.", "reference_files": [f"files/{name}.csv"],
        "deliverable_files": [], "rubric_json": '[{"criterion": "c", "score": 2}]',
    }  # fmt: skip


def _rows(name: str) -> dict[str, Any]:
    return {
        "id": name, "prompt": f"Do {name}.", "files": [f"files/{name}.csv"], "price": 3, "currency": "USD",
        "rubric": "[2] c",
    }  # fmt: skip


def _program(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "title": name,
        "description": f"Do {name}.",
        "price": 3,
        "tests": [{"input": "1", "output": "1"}],
    }


def _answers(name: str) -> dict[str, Any]:
    choice = {"question": "q", "choices": ["a", "b"], "correct_answer": "A", "points": 10, "explanation": ""}
    pricing = {"avg_price": 3, "currency": "USD"}
    tags: list[str] = []
    metadata: dict[str, Any] = {
        "project_id": name,
        "job_title": name,
        "job_description": f"Do {name}.",
        "tags": tags,
        "pricing": pricing,
    }
    return {"metadata": metadata, "test_content": {"multiple_choice": [choice], "passing_score": 7}}


def _posting(name: str) -> dict[str, Any]:
    return posting(item_id=name)


def _no_weight(row: dict[str, Any]) -> None:
    for field, text in (("rubric", "[0] c"), ("rubric_json", '[{"criterion": "c", "score": 0}]')):
        if field in row:
            row[field] = text


def _no_points(row: dict[str, Any]) -> None:
    row["test_content"]["multiple_choice"][0]["points"] = 0


ROWS = [
    *(
        Rows(f"rows {end}", "rows", f"t.{end}", _rows, ("id",), ("prompt",), ("price",), ("files",), _no_weight, ("currency",))
        for end in ("json", "jsonl", "csv", "parquet")
    ),
    *(
        Rows(f"gdpval {end}", "gdpval", f"t.{end}", _gdpval, ("task_id",), ("prompt",), None, ("reference_files",), _no_weight)
        for end in ("jsonl", "parquet")
    ),
    Rows("freelance A", "freelance", "t.json", _program, ("id",), ("description",), ("price",)),
    Rows(
        "freelance B", "freelance", "t.json", _answers, ("metadata", "project_id"), ("metadata", "job_description"),
        ("metadata", "pricing", "avg_price"), weights=_no_points, currency=("metadata", "pricing", "currency"),
    ),
    *(
        Rows(f"payworthy {end}", "payworthy", f"t.{end}", _posting, ("item_id",), ("description",), ("budget",))
        for end in ("json", "jsonl")
    ),
]  # fmt: skip


@contextmanager
def bounded() -> Generator[None]:
    """Fail for whoever takes long, or holds much at once."""
    tracemalloc.start()
    began = time.monotonic()
    try:
        yield
        assert time.monotonic() - began < MAX_S
        assert tracemalloc.get_traced_memory()[1] < MAX_HEAP_BYTES
    finally:
        tracemalloc.stop()


def judge(imported: Imported, cost: Cost) -> None:
    """The report is there, the service takes the manifest, the neighbours are usable, the victim costs what it must."""
    checked(imported)
    report = json.loads(json.dumps(validation(imported), allow_nan=False))
    assert report["counts"]["ok"] + report["counts"]["disputed"] + report["counts"]["quarantined"] == len(
        imported.items
    )
    assert not [path for path in imported.files.values() if path.is_relative_to("/etc")]
    usable = [item for item in imported.items if item["status"] in ("ok", "disputed")]
    good = 3 if cost == "nothing" else 2
    assert len(imported.items) == 3, imported.items
    assert len(usable) == good or (cost == "any" and len(usable) == 3), imported.items
    assert all(item["problems"] for item in imported.items if item["status"] != "ok")


@pytest.mark.parametrize("kind", FOLDER_DAMAGE)
@pytest.mark.parametrize("shape", FOLDERS, ids=lambda shape: shape.name)
def test_folders(tmp_path: Path, shape: Folders, kind: str) -> None:
    damage, cost = FOLDER_DAMAGE[kind]
    damage(shape, shape.build(tmp_path))
    with bounded(), read(shape.importer, tmp_path, **shape.options) as imported:
        judge(imported, shape.costs.get(kind, cost))


CASES = [
    pytest.param(shape, kind, id=f"{shape.name}-{kind}", marks=PROGRAM.get(Path(shape.file).suffix, []))
    for shape in ROWS
    for kind in ROW_DAMAGE
    if applies(shape, kind)
]


@pytest.mark.parametrize(("shape", "kind"), CASES)
def test_rows(tmp_path: Path, shape: Rows, kind: str) -> None:
    damage, cost = ROW_DAMAGE[kind]
    rows = shape.build(tmp_path)
    damage(shape, rows[1], tmp_path)
    path = shape.write(tmp_path, rows)
    with bounded(), read(shape.importer, path) as imported:
        judge(imported, cost)


TEXTS = [shape for shape in ROWS if not shape.file.endswith(".parquet")]


# CSV has texts only.
BYTES = [
    (s, k) for s in TEXTS for k in ("wrong_encoding", "deep_nesting", "bare_word") if k[0] == "w" or s.file != "t.csv"
]


@pytest.mark.parametrize(("shape", "kind"), BYTES, ids=[f"{shape.name}-{kind}" for shape, kind in BYTES])
def test_bytes_within_a_row(tmp_path: Path, shape: Rows, kind: str) -> None:
    text = f"Do {VICTIM}.".encode() if shape.importer != "payworthy" else f'"{VICTIM}"'.encode()
    path = shape.write(tmp_path, shape.build(tmp_path))
    data = path.read_bytes()
    assert text in data
    inner = text.strip(b'"')
    spoilt = {
        "wrong_encoding": data.replace(inner, b"Gr\xf6\xdfe"),
        "deep_nesting": data.replace(b'"' + inner + b'"', DEEP.encode()),
        "bare_word": data.replace(b'"' + inner + b'"', b"undefined"),
    }
    path.write_bytes(spoilt[kind])
    with bounded(), read(shape.importer, path) as imported:
        judge(imported, "item")


@pytest.mark.parametrize("shape", ROWS, ids=lambda shape: shape.name)
def test_cut_short(tmp_path: Path, shape: Rows) -> None:
    path = shape.write(tmp_path, shape.build(tmp_path))
    data = path.read_bytes()
    at = data.rfind(LAST.encode()) - 3
    path.write_bytes(data[:at])
    if path.suffix == ".parquet":
        with pytest.raises(InvalidInput, match="not parquet"), bounded():
            read(shape.importer, path)
        return
    with bounded(), read(shape.importer, path) as imported:
        judge(imported, "item")


@pytest.mark.parametrize("shape", ROWS, ids=lambda shape: shape.name)
@pytest.mark.parametrize("kind", ["sparse", "empty", "folder", "utf-16", "missing"])
def test_a_source_that_is_none(tmp_path: Path, shape: Rows, kind: str) -> None:
    path = shape.write(tmp_path, shape.build(tmp_path))
    if kind == "utf-16":
        path.write_bytes(path.read_bytes().decode("latin-1").encode("utf-16"))
    else:
        path.unlink()
    if kind == "sparse":
        with path.open("wb") as file:
            file.truncate(10 << 30)
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(InvalidInput), bounded():
        read(shape.importer, path)
