"""JobBench as parquet: the same tasks as from folders; a broken row costs itself."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars
import pytest

from tests.unit.workstead.importers.jobbench.test_importer import GOOD, NOTES, add_task
from tests.unit.workstead.importers.sets import checked, problems, read
from workstead.task_dir import InvalidInput

ROW = {
    "task_id": "clerks__task1",
    "occupation": "clerks",
    "task_num": 1,
    "prompt": "Do it.\n\nReference Files\n- a b.csv\n",
    "reference_files": ["dataset/clerks/task1/task_folder/sub/a b.csv"],
    "reference_file_urls": ["hub:///a"],
    "reference_file_hf_uris": ["hf://a"],
    "rubric_json": json.dumps(GOOD),
    "task_card": "the answer is 42",
}


def write(path: Path, *rows: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    polars.DataFrame([{**ROW, **row} for row in rows], infer_schema_length=None, strict=False).write_parquet(path)
    return path


def test_both_splits_give_the_tasks_that_folders_give(tmp_path: Path) -> None:
    for place in ("dataset/clerks/task1", "dataset_easy/clerks/task1"):
        add_task(tmp_path / "folders", place)
    shutil.copytree(tmp_path / "folders", tmp_path / "table")
    write(tmp_path / "table/tasks.parquet", {})
    write(tmp_path / "table/easy.parquet", {"reference_files": ["sub/a b.csv"]})
    with read("jobbench", tmp_path / "folders") as one, read("jobbench", tmp_path / "table") as other:
        folders, tables = checked(one).items, checked(other).items
        assert [item.key for item in tables] == [item.key for item in folders]
        for left, right in zip(folders, tables, strict=True):
            assert left.task is not None
            assert right.task is not None
            assert right.task.visible == left.task.visible
            same = {"hidden", "facets"}
            assert right.task.model_dump(exclude=same) == left.task.model_dump(exclude=same)
            hidden = {ref.path: ref.sha256 for ref in right.task.hidden}
            assert {ref.path for ref in left.task.hidden} - set(hidden) == set()
            kept = json.loads(other.files[hidden["source/references.json"]].read_text())
            assert (kept["urls"], kept["hf_uris"]) == (["hub:///a"], ["hf://a"])
        assert [problems(other, item.key) for item in tables] == [NOTES, NOTES]


def test_a_table_alone_with_a_folder_of_files(tmp_path: Path) -> None:
    table = write(tmp_path / "t/easy.parquet", {"reference_files": ["x.csv"]})
    (tmp_path / "files").mkdir()
    (tmp_path / "files/x.csv").write_text("1")
    with read("jobbench", table, files=tmp_path / "files") as imported:
        [item] = checked(imported).items
    assert (item.key, item.status) == ("easy--clerks--task1", "ok")
    assert item.task is not None
    assert [ref.path for ref in item.task.visible] == ["task_folder/TASK_INSTRUCTIONS.txt", "task_folder/x.csv"]


BAD: list[tuple[Mapping[str, Any], str]] = [
    ({"reference_files": ["../../secret"]}, "bad_file"),
    ({"reference_files": ["gone.csv"]}, "missing_file"),
    ({"reference_files": ["x.csv", "other/task_folder/X.csv"]}, "bad_file"),
    ({"reference_files": ["link.csv"]}, "missing_file"),
    ({"prompt": " "}, "bad_item"),
    ({"prompt": None}, "bad_item"),
    ({"prompt": "a\0b"}, "unstorable_text"),
    ({"task_num": 2}, "bad_task_name"),
    ({"occupation": "Clerks/.."}, "bad_item"),
    ({"rubric_json": "{"}, "bad_rubrics"),
    ({"rubric_json": '{"rubrics": [{"rubric": "r", "weight": 0, "criterion": ["c"]}]}'}, "bad_rubrics"),
]


@pytest.mark.parametrize(("row", "type"), BAD)
def test_a_bad_row_costs_itself(tmp_path: Path, row: Mapping[str, Any], type: str) -> None:
    good = {"task_id": "clerks__task9", "task_num": 9, "reference_files": ["x.csv"]}
    table = write(tmp_path / "tasks.parquet", {"reference_files": ["x.csv"], **row}, good)
    (tmp_path / "x.csv").write_text("1")
    (tmp_path / "link.csv").symlink_to("/etc/passwd")
    with read("jobbench", table) as imported:
        checked(imported)
        assert [item["status"] for item in imported.items] == ["quarantined", "ok"]
        assert type in problems(imported, imported.items[0]["key"])


def test_pins_know_the_table(tmp_path: Path) -> None:
    table = write(tmp_path / "tasks.parquet", {"reference_files": []})
    pins = tmp_path / "pins.json"
    pins.write_text(json.dumps({"version": 1, "revision": "r", "files": {"tasks.parquet": "0" * 64}}))
    with read("jobbench", table, pins=pins) as imported:
        assert problems(imported, "main--clerks--task1")[0] == "digest_differs"


def test_what_is_no_parquet(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.parquet", {}).read_bytes()
    for data in (b"", b"PAR1", whole[: len(whole) // 2], b"PAR1" + bytes(2_000) + whole[-300:]):
        (tmp_path / "tasks.parquet").write_bytes(data)
        with pytest.raises(InvalidInput, match="not parquet that can be read"):
            read("jobbench", tmp_path / "tasks.parquet")


def test_what_unfolds_beyond_all_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write(tmp_path / "tasks.parquet", *([{"prompt": "x" * 1_000_000}] * 40))
    assert table.stat().st_size < 100_000
    monkeypatch.setattr("workstead.importers.parquet.MAX_JSON_BYTES", 8 << 20)
    with pytest.raises(InvalidInput, match="File too large"):
        read("jobbench", table)


def test_no_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None:
        return None

    monkeypatch.setattr("importlib.util.find_spec", nothing)
    with pytest.raises(InvalidInput, match="needs polars: pip install"):
        read("jobbench", write(tmp_path / "tasks.parquet", {}))
