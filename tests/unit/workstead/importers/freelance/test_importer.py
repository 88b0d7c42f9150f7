"""Freelance: what becomes of each kind of item, and that no answer is ever visible."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.workstead.importers.sets import DEMO, checked, problems, read
from workstead.importers.freelance.durations import parse_duration
from workstead.task_dir import InvalidInput

A, B = DEMO / "freelance/shape_a.json", DEMO / "freelance/shape_b.json"


def item_a(**fields: Any) -> dict[str, Any]:
    return {"id": 1, "title": "T", "description": "D", "price": 5, "tests": [{"input": "1", "output": "2"}], **fields}


def write(tmp_path: Path, *items: Any) -> Path:
    path = tmp_path / "items.json"
    path.write_text(json.dumps(items))
    return path


def test_statuses_of_the_set() -> None:
    with read("freelance", A) as a, read("freelance", B) as b:
        assert {i["key"]: i["status"] for i in a.items} == {
            **dict.fromkeys(("101", "102", "103", "104"), "ok"), "105": "disputed", "106": "quarantined",
        }  # fmt: skip
        assert {i["key"]: i["status"] for i in b.items} == {
            **dict.fromkeys(("201", "202", "205"), "ok"), **dict.fromkeys(("203", "206"), "disputed"), "204": "quarantined",
        }  # fmt: skip
        assert problems(b, "203") == ["gold_not_sorted", "gold_growth_differs"]
        assert problems(b, "206")[:2] == ["explanation_names_other_choice", "unstated_standard_deviation"]
        assert problems(b, "205") == ["bad_price", "bad_time_limit"]


def test_prices() -> None:
    with read("freelance", A) as a, read("freelance", B) as b:
        prices = {i.key: i.task.price for m in (checked(a), checked(b)) for i in m.items if i.task}
    assert {k for k, price in prices.items() if price is None} == {"103", "104", "205", "206"}
    posted, euros, wide = prices["102"], prices["202"], prices["203"]
    assert posted is not None
    assert euros is not None
    assert wide is not None
    assert (posted.amount, posted.currency, posted.usd, posted.basis) == ("480", "USD", "480", "posted")
    assert (euros.amount, euros.currency, euros.usd, euros.basis) == ("140", "EUR", "153.16", "midpoint")
    assert (wide.min, wide.amount, wide.max, wide.usd) == ("8", "5004", "10000", "3742.99")


@pytest.mark.parametrize("price", [-1, "12", True, [1], 1e15, 1e300])
def test_a_bad_price_leaves_the_item_usable(tmp_path: Path, price: Any) -> None:
    with read("freelance", write(tmp_path, item_a(price=price))) as imported:
        assert imported.items[0]["status"] == "ok"
        assert imported.items[0]["task"]["price"] is None
        assert problems(imported, "1")[-1] == "bad_price"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60 minutes", 3600),
        ("1 hour 30 minutes", 5400),
        ("45 secs", 45),
        ("1.5 hours", 5400),
        ("soon", None),
        ("", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


def test_the_time_limit_becomes_the_wall_clock_and_stays_readable() -> None:
    with read("freelance", B) as b:
        tasks = {i.key: i.task for i in checked(b).items}
    timed, default = tasks["202"], tasks["205"]
    assert timed is not None
    assert default is not None
    assert (timed.limits.wall_clock_s, timed.facets["time_limit"]) == (5400, "1 hour 30 minutes")
    assert default.limits.wall_clock_s == 3600


def everything_visible(imported: Any, key: str) -> str:
    task = next(i["task"] for i in imported.items if i["key"] == key)
    return task["instruction"] + "".join(imported.files[ref["sha256"]].read_text() for ref in task["visible"])


def test_no_answer_and_no_explanation_is_visible() -> None:
    values = json.loads(B.read_text())
    with read("freelance", B) as imported:
        for value in values:
            key, content = str(value["metadata"]["project_id"]), value["test_content"]
            if key == "204":
                continue
            seen = everything_visible(imported, key)
            for text in content["string_transformations"]:
                assert text["input_text"] in seen.replace("\\u00dc", "Ü")
                assert f'"{text["expected_output"]}"' not in seen
                assert text["explanation"] not in seen
            for choice in content["multiple_choice"]:
                assert choice["question"] in seen
                assert not choice["explanation"] or choice["explanation"] not in seen
            assert "correct_answer" not in seen
            assert "expected" not in seen


def test_program_tests_are_hidden() -> None:
    with read("freelance", A, solutions=DEMO / "freelance/solutions") as imported:
        for value in json.loads(A.read_text())[:5]:
            seen = everything_visible(imported, str(value["id"]))
            assert not [t for t in value["tests"] if len(t["output"]) > 1 and t["output"] in seen]


def test_rules_are_told_only_where_somebody_reviewed_them() -> None:
    rules = DEMO / "freelance/rules.json"
    with read("freelance", B, rules=rules) as strict, read("freelance", B, rules=rules, visibility="rule_only") as told:
        assert "each with one capital letter" not in everything_visible(strict, "201")
        seen = everything_visible(told, "201")
        assert seen.count("each with one capital letter") == 2
        assert "becomes 00" not in seen
        assert problems(told, "201") == ["no_rule", "no_rule"]
        assert told.manifest["labels"]["visibility"] == "rule_only"


@pytest.mark.parametrize(("suite", "kinds"), [("choice", {"choice"}), ("text", {"text"}), ("all", {"choice", "text"})])
def test_suites(suite: str, kinds: set[str]) -> None:
    with read("freelance", B, suite=suite) as imported:
        task = next(i["task"] for i in imported.items if i["key"] == "201")
        hidden = {ref["path"]: imported.files[ref["sha256"]] for ref in task["hidden"]}
        tests = json.loads(hidden["tests.json"].read_text())
        assert {t["kind"] for t in tests["tests"]} == kinds
        points = sum(t["points"] for t in tests["tests"])
        assert tests["passing_score"] == pytest.approx(0.7 * points)
        assert json.loads(hidden["solution/output/answers.json"].read_text()).keys() == {
            t["id"] for t in tests["tests"]
        }
        assert ("no_tests" in problems(imported, "203")) == (suite == "choice")


def test_reviewers_word(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text('[201, "999"]')
    with read("freelance", B, disputed=tmp_path / "list.json") as imported:
        assert imported.items[0]["status"] == "disputed"
        assert imported.notes == ["disputed: no item has the id '999'"]
    (tmp_path / "bad.json").write_text('{"201": 5}')
    with pytest.raises(InvalidInput, match="id → reason"):
        read("freelance", B, disputed=tmp_path / "bad.json")


def test_ids(tmp_path: Path) -> None:
    twice = write(tmp_path, item_a(), item_a(title="other"), item_a(id=True), item_a(id="x\x1b[31m"), 5)
    with read("freelance", twice) as imported:
        assert [i["key"] for i in imported.items] == ["1", "1~2", "item-3", "x\ufffd[31m", "item-5"]
        assert [i["status"] for i in imported.items] == ["ok", "quarantined", "quarantined", "ok", "quarantined"]
        assert "duplicate_id" in problems(imported, "1~2")


def test_names_tell_items_apart(tmp_path: Path) -> None:
    ids = ["a-b", "a b", "a/b", "\u00e4\u00f6", "\u00f6\u00e4", "x" * 100, "x" * 101]
    with read("freelance", write(tmp_path, *(item_a(id=id) for id in ids))) as imported:
        names = [item.task.name for item in checked(imported).items if item.task is not None]
    assert names[0] == "freelance/a-b"
    assert len(set(names)) == len(ids)


@pytest.mark.parametrize(
    ("change", "type"),
    [
        ({"tests": []}, "no_tests"),
        ({"tests": [{"input": 1, "output": "2"}]}, "bad_item"),
        ({"tests": [{"input": "1"}]}, "bad_item"),
        ({"title": " \n"}, "bad_item"),
        ({"description": "x\0y"}, "unstorable_text"),
        ({"description": "x\ud800y"}, "unstorable_text"),
        ({"tests": [{"input": "\ud800", "output": "2"}]}, "unstorable_text"),
        ({"price": float("inf")}, "not_finite"),
        ({"extra": [{"deep": -float("inf")}]}, "not_finite"),
        ({"extra": 10**40}, "not_finite"),
        ({"description": "d" * 250_000}, "bad_item"),
    ],
)
def test_quarantine(tmp_path: Path, change: dict[str, Any], type: str) -> None:
    with read("freelance", write(tmp_path, item_a(**change), item_a(id=2))) as imported:
        assert [i["status"] for i in imported.items] == ["quarantined", "ok"]
        assert type in problems(imported, "1")
        checked(imported)


def test_a_gold_letter_without_a_choice(tmp_path: Path) -> None:
    value = json.loads(B.read_text())[1]
    value["test_content"]["multiple_choice"][0] |= {"choices": ["a", "b"], "correct_answer": "D"}
    with read("freelance", write(tmp_path, value)) as imported:
        assert problems(imported, "202") == ["gold_is_no_choice"]
        assert imported.items[0]["task"] is None


def test_a_solution_is_taken_by_a_harmless_name_only(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "secret.py").write_text("secret")
    (tmp_path / "s/2.py").symlink_to(tmp_path / "secret.py")
    (tmp_path / "s/3.py").write_text("print(2)")
    items = write(tmp_path, item_a(id="../secret"), item_a(id=2), item_a(id=3))
    with read("freelance", items, solutions=tmp_path / "s") as imported:
        hidden = [[ref["path"] for ref in i["task"]["hidden"]] for i in imported.items]
    assert hidden == [["tests.json"], ["tests.json"], ["tests.json", "solution/output/solution.py"]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"{}", "is not an array"),
        (b"[]", "no element has"),
        (b"[1, {}]", "no element has"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_source_at_all(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=said):
        read("freelance", path)
    with pytest.raises(InvalidInput, match="is not a file"):
        read("freelance", tmp_path)
