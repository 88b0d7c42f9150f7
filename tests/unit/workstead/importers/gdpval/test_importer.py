"""GDPval: what is shown, what is the reference, what is graded how; and rows that cost themselves only."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars
import pytest

from service.graders import registry
from tests.unit.workstead.importers.sets import checked, problems, read
from workstead.task_dir import InvalidInput

HASH = "0123456789abcdef0123456789abcdef"
RUBRIC: list[Any] = [
    {"criterion": "names the total", "score": 4, "tags": []},
    {"criterion": "is a workbook", "score": 1.5},
]
ROW: Mapping[str, Any] = {
    "task_id": "00000000-0000-4000-8000-000000000001",
    "sector": "Trade",
    "occupation": "Buyers",
    "prompt": "Compare the offers.",
    "reference_files": [f"reference_files/{HASH}/offers a.csv"],
    "reference_file_urls": ["hub:///a"],
    "reference_file_hf_uris": ["hf://a"],
    "deliverable_files": [f"deliverable_files/{HASH}/report.md"],
    "deliverable_file_urls": [],
    "deliverable_file_hf_uris": [],
    "rubric_pretty": "+4 names the total",
    "rubric_json": json.dumps(RUBRIC),
}


def write(root: Path, *rows: Mapping[str, Any], name: str = "tasks.jsonl") -> Path:
    for folder, file in (("reference_files", "offers a.csv"), ("deliverable_files", "report.md")):
        (root / folder / HASH).mkdir(parents=True, exist_ok=True)
        (root / folder / HASH / file).write_text(file)
    path = root / name
    path.parent.mkdir(exist_ok=True)
    whole = [{**ROW, **row} for row in rows]
    if path.suffix == ".parquet":
        polars.DataFrame(whole, infer_schema_length=None).write_parquet(path)
    else:
        path.write_text("\n".join(map(json.dumps, whole)))
    return path


def one(root: Path, row: Mapping[str, Any], **settings: str) -> tuple[dict[str, Any], list[str]]:
    with read("gdpval", write(root, row), **settings) as imported:
        checked(imported)
        return imported.items[0], problems(imported, imported.items[0]["key"])


def test_a_task(tmp_path: Path) -> None:
    write(tmp_path, {}, name="data/train-00000-of-00001.parquet")
    with read("gdpval", tmp_path, judge="acme/judge-1") as imported:
        manifest = checked(imported)
        task = manifest.items[0].task
        assert task is not None
        assert [ref.path for ref in task.visible] == ["reference_files/offers a.csv"]
        assert HASH not in task.instruction
        for told in ("Compare the offers.", "- /workspace/reference_files/offers a.csv", "/workspace/output"):
            assert told in task.instruction
        assert {ref.path for ref in task.hidden} == {
            *("solution/output/report.md", "rubrics.json", "source/rubric.txt", "source/references.json"),
        }
        assert task.facets == {"sector": "Trade", "occupation": "Buyers", "reference_files": 1.0}
        for spec in task.graders:
            registry.check(spec, task)
        assert [spec.method for spec in task.graders] == ["pairwise", "rubric_chain"]
        rubrics = next(ref for ref in task.hidden if ref.path == "rubrics.json")
        assert json.loads(imported.files[rubrics.sha256].read_text())["rubrics"] == [
            {"rubric": "names the total", "weight": 4, "criterion": ["names the total"]},
            {"rubric": "is a workbook", "weight": 1.5, "criterion": ["is a workbook"]},
        ]
    assert [g.facet for g in manifest.groupings] == ["sector", "occupation"]


def test_each_form_gives_the_same_task(tmp_path: Path) -> None:
    found: list[Any] = []
    for name in ("a.jsonl", "a.parquet"):
        with read("gdpval", write(tmp_path, {}, name=name)) as imported:
            checked(imported)
            found.append(imported.items)
    assert found[0] == found[1]


def test_the_early_release_has_neither_rubrics_nor_deliverables(tmp_path: Path) -> None:
    early = dict.fromkeys(name for name in ROW if name.startswith(("rubric", "deliverable")))
    item, said = one(tmp_path, early)
    assert (item["status"], said) == ("quarantined", ["no_reference_solution", "nothing_to_grade_by", "grader_later"])


@pytest.mark.parametrize(("grader", "methods"), [("pairwise", ["pairwise"]), ("rubric", ["rubric_chain"])])
def test_one_grader(tmp_path: Path, grader: str, methods: list[str]) -> None:
    item, _ = one(tmp_path, {}, grader=grader, judge="j")
    assert [spec["method"] for spec in item["task"]["graders"]] == methods


def test_a_part_of_the_experts_work_is_no_reference(tmp_path: Path) -> None:
    files = [*ROW["deliverable_files"], "deliverable_files/gone.md"]
    item, said = one(tmp_path, {"deliverable_files": files}, judge="j")
    assert (item["status"], said) == ("ok", ["missing_file", "no_reference_solution"])
    assert [spec["method"] for spec in item["task"]["graders"]] == ["rubric_chain"]
    assert not [ref for ref in item["task"]["hidden"] if ref["path"].startswith("solution/")]


def test_criteria_that_take_points_away(tmp_path: Path) -> None:
    item, said = one(tmp_path, {"rubric_json": json.dumps([*RUBRIC, {"criterion": "rude", "score": -2}])})
    assert (item["status"], said) == ("disputed", ["dropped_criteria", "grader_later"])


BAD: list[tuple[Mapping[str, Any], str]] = [
    ({"reference_files": ["reference_files/gone.csv"]}, "missing_file"),
    ({"reference_files": ["../x"]}, "bad_file"),
    ({"reference_files": ["/etc/passwd"]}, "bad_file"),
    ({"reference_files": [f"reference_files/{HASH}/offers a.csv", "reference_files/offers a.csv"]}, "bad_file"),
    ({"prompt": " "}, "bad_item"),
    ({"prompt": 3}, "bad_item"),
    ({"sector": None}, "bad_item"),
    ({"prompt": "a\ud800"}, "unstorable_text"),
    ({"rubric_json": "[{"}, "bad_rubrics"),
    ({"rubric_json": "[]"}, "bad_rubrics"),
    ({"rubric_json": '[{"criterion": "c", "score": 0}]'}, "bad_rubrics"),
    ({"rubric_json": '[{"criterion": "c", "score": NaN}]'}, "bad_rubrics"),
    ({"rubric_json": '[{"criterion": "c", "score": Infinity}]'}, "bad_rubrics"),
]


@pytest.mark.parametrize(("row", "type"), BAD)
def test_a_bad_row_costs_itself(tmp_path: Path, row: Mapping[str, Any], type: str) -> None:
    with read("gdpval", write(tmp_path, row, {"task_id": "good"})) as imported:
        checked(imported)
        assert [item["status"] for item in imported.items] == ["quarantined", "ok"]
        assert type in problems(imported, imported.items[0]["key"])


def test_broken_lines_and_doubled_ids(tmp_path: Path) -> None:
    path = write(tmp_path, {}, {})
    path.write_text(path.read_text() + "\n{\n")
    with read("gdpval", path) as imported:
        checked(imported)
        found = [(item["key"], item["status"]) for item in imported.items]
        assert found == [(ROW["task_id"], "ok"), (f"{ROW['task_id']}~2", "quarantined"), ("row 3", "quarantined")]
        assert problems(imported, "row 3") == ["bad_row"]


def test_what_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has no table"):
        read("gdpval", tmp_path)
