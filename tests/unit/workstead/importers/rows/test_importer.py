"""Any table of tasks: columns by name or mapping, answers and rubrics in the ways people write them."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.graders import registry
from tests.unit.workstead.importers.sets import checked, problems, read
from workstead.importers.drafts import Draft
from workstead.importers.rows.columns import FIELDS, Fields
from workstead.importers.rows.gradings import answer_rule, rubrics_of
from workstead.task_dir import InvalidInput


def write(root: Path, *rows: Any, name: str = "rows.json") -> Path:
    (root / name).write_text(json.dumps(rows))
    return root / name


def one(root: Path, row: Any, **options: str | Path) -> tuple[dict[str, Any], list[str]]:
    with read("rows", write(root, {"id": "a", "prompt": "Do it.", **row}), **options) as imported:
        checked(imported)
        return imported.items[0], problems(imported, imported.items[0]["key"])


def test_a_csv_with_columns_of_our_names(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/x y.csv").write_text("1")
    (tmp_path / "t.csv").write_text(
        "id,prompt,files,answer,rubric,price,currency,facet.category,human_hours,note\n"
        '7,"Add, then tell.",in/x y.csv,42,"[10] is right\n- is short",12.50,USD,Sums,0.5,hi\n'
    )
    with read("rows", tmp_path / "t.csv", judge="acme/j") as imported:
        manifest = checked(imported)
        task = manifest.items[0].task
        assert task is not None
        for spec in task.graders:
            registry.check(spec, task)
        assert [spec.method for spec in task.graders] == ["exact", "rubric_chain"]
        assert [ref.path for ref in task.visible] == ["in/x y.csv"]
        assert "- /workspace/in/x y.csv" in task.instruction
        assert "/workspace/output/answer.json" in task.instruction
        hidden = {ref.path: json.loads(imported.files[ref.sha256].read_text()) for ref in task.hidden}
        assert hidden == {
            "expected.json": {"answer": "42"},
            "solution/output/answer.json": {"answer": "42"},
            "rubrics.json": {
                "rubrics": [
                    {"rubric": "is right", "weight": 10, "criterion": ["is right"]},
                    {"rubric": "- is short", "weight": 1, "criterion": ["- is short"]},
                ]
            },
        }
        assert (task.facets, task.human_time_s) == ({"category": "Sums"}, 1800)
        assert task.price is not None
        assert (task.price.amount, task.price.usd, task.price.basis) == ("12.5", "12.5", "posted")
        assert imported.notes == ["column 'note' is not used"]
    assert [g.facet for g in manifest.groupings] == ["category"]


def test_a_mapping(tmp_path: Path) -> None:
    source = tmp_path / "t.json"
    source.write_text(json.dumps({"data": [{"n": 1, "q": {"text": "How many?"}, "a": 3, "tags": "x, y"}]}))
    mapping = tmp_path / "map.toml"
    mapping.write_text(
        'rows = "/data"\n[fields]\nid = "n"\nprompt = "/q/text"\nanswer = "a"\n'
        '"facet.tags" = {from = "tags", split = ","}\n"facet.suite" = {value = "counting"}\n'
    )
    with read("rows", source, mapping=mapping) as imported:
        task = checked(imported).items[0].task
        assert (imported.items[0]["key"], imported.notes) == ("1", [])
    assert task is not None
    assert task.facets == {"tags": ["x", "y"], "suite": "counting"}
    assert task.graders[0].settings["answers"] == [{"id": "answer", "type": "int"}]


@pytest.mark.parametrize(
    ("given", "texts", "weights"),
    [
        ("a\n\n[2.5] b", ["a", "b"], [1, 2.5]),
        ('["a", "[3] b"]', ["a", "b"], [1, 3]),
        ('[{"criterion": "a", "score": 2}]', ["a"], [2]),
        ([{"rubric": "r", "criterion": ["a", "b"], "weight": 4}], ["a"], [4]),
        ({"rubrics": [{"rubric": "r", "points": 4}]}, ["r"], [4]),
        ("[10] a", ["a"], [10]),
    ],
)
def test_rubrics(given: Any, texts: list[str], weights: list[float]) -> None:
    found = rubrics_of(given, Draft("k"))
    assert found is not None
    assert [r["criterion"][0] for r in found["rubrics"]] == texts
    assert [r["weight"] for r in found["rubrics"]] == weights


def fields(**given: Any) -> Fields:
    return Fields.model_validate({"id": "a", "prompt": "p", **given})


@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [
        ({"answer": "x"}, "string", "x"),
        ({"answer": 3}, "int", 3),
        ({"answer": Decimal("2.5"), "tolerance": "0.1"}, "float", 2.5),
        ({"answer": "3", "answer_type": "int"}, "int", 3),
        ({"answer": "TRUE", "answer_type": "bool"}, "bool", True),
        ({"answer": '["a", 1.5]', "answer_type": "list"}, "list", ["a", 1.5]),
        ({"answer": "b", "choices": ["a", "b"]}, "choice", "b"),
    ],
)
def test_answers(given: Any, kind: str, value: Any) -> None:
    found = answer_rule(fields(**given), Draft("k"))
    assert found is not None
    assert (found[0]["type"], found[1]) == (kind, value)


BAD: list[tuple[Any, str]] = [
    ({"id": None}, "bad_field"),
    ({"id": True}, "bad_field"),
    ({"prompt": " "}, "bad_field"),
    ({"prompt": "a\0b"}, "unstorable_text"),
    ({"files": "gone.csv"}, "missing_file"),
    ({"files": ["../x"]}, "bad_file"),
    ({"files": ["dir"]}, "missing_file"),
    ({"rubric": "{"}, "bad_rubrics"),
    ({"rubric": "[0] a"}, "bad_rubrics"),
    ({"rubric": [{"criterion": "a", "weight": "3"}]}, "bad_rubrics"),
    ({"rubric": 3}, "bad_rubrics"),
    ({"answer": "x", "answer_type": "int"}, "bad_answer"),
    ({"answer": "c", "choices": ["a", "b"]}, "bad_answer"),
    ({"answer": {"a": 1}, "answer_type": "list"}, "bad_answer"),
    ({"price": "cheap", "currency": "USD"}, "bad_field"),
    ({"price": -1, "currency": "USD"}, "bad_field"),
    ({"price": 1, "currency": "dollars"}, "bad_field"),
]


@pytest.mark.parametrize(("row", "type"), BAD)
def test_a_bad_row_costs_itself(tmp_path: Path, row: Any, type: str) -> None:
    (tmp_path / "dir").mkdir()
    source = write(tmp_path, {"id": "a", "prompt": "p", **row}, {"id": "b", "prompt": "q"}, 3)
    with read("rows", source) as imported:
        checked(imported)
        assert [item["status"] for item in imported.items] == ["quarantined", "ok", "quarantined"]
        assert type in problems(imported, imported.items[0]["key"])
        assert problems(imported, "row 3") == ["bad_row"]


def test_where_the_trouble_is_is_said(tmp_path: Path) -> None:
    item, _ = one(tmp_path, {"answer": "x", "price": "cheap"})
    assert item["problems"][0]["where"] == "row 1, field price"
    source = write(tmp_path, {"id": "a", "prompt": "p", "kind": "odd"})
    mapping = tmp_path / "map.json"
    mapping.write_text(
        json.dumps({"fields": {"id": "id", "prompt": "prompt", "pay_type": {"from": "kind", "map": {"F": "fixed"}}}})
    )
    with read("rows", source, mapping=mapping) as imported:
        assert imported.items[0]["problems"][0]["where"] == "row 1, field pay_type (kind)"


def test_remarks(tmp_path: Path) -> None:
    item, said = one(tmp_path, {"price": 3, "facet.a": {"b": 1}, "facet._x": "y", "facet.n": 2})
    assert (item["status"], said) == ("ok", ["grader_later", "bad_facet", "bad_facet", "bad_price"])
    assert item["task"]["facets"] == {"n": 2.0}


def test_a_column_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no column is called prompt"):
        read("rows", write(tmp_path, {"id": 1}))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda x: st.lists(x, max_size=4) | st.dictionaries(st.sampled_from(["rubrics", "criterion", "weight"]), x),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.dictionaries(st.sampled_from([f for f in FIELDS if f != "facet."] + ["facet.x"]), _VALUES), max_size=3)
)
def test_any_rows(tmp_path: Path, rows: list[Any]) -> None:
    good = {"id": "the good one", "prompt": "p"}
    with read("rows", write(tmp_path, *rows, good)) as imported:
        manifest = checked(imported)
        assert len(manifest.items) == len(rows) + 1
        assert manifest.items[-1].status == "ok"
