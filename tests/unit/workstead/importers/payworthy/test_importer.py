"""PayWorthy: tables and folders, what a mapping may say, what drops an item, what it is worth, and who sees what."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

from service.graders import registry
from tests.unit.workstead.importers.sets import checked, problems, read
from workstead.importers.contract import Imported
from workstead.task_dir import InvalidInput

TEXT = "We sell hiking boots and need the product texts of our spring catalogue rewritten. " * 3
LATER = ["grader_later"]


def posting(**fields: Any) -> dict[str, Any]:
    return {
        "item_id": "a1",
        "title": "Rewrite texts",
        "description": TEXT,
        "pay_type": "fixed",
        "budget": 100,
        **fields,
    }


def table(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text(json.dumps(rows))
    return path


def one(tmp_path: Path, row: dict[str, Any], **settings: str | Path) -> tuple[Any, list[str], Imported]:
    with read("payworthy", table(tmp_path / "rows.json", row), **settings) as imported:
        item = checked(imported).items[0]
    return item, problems(imported, item.key), imported


def test_a_posting(tmp_path: Path) -> None:
    fields = {
        "skills": ["copywriting", "SEO"],
        "duration": "Less than 1 week",
        "expertise": "Intermediate",
        "category": "Writing",
        "category_2": "Copy",
        "posted_at": "2025-03-07T10:00:00Z",
        "needs": "Self-contained",
        "text_kind": "surrogate",
        "split": ["benchmark", "subset400"],
    }
    item, said, imported = one(tmp_path, posting(**fields), judge="acme/j-1,acme/j-2")
    task = item.task
    assert (item.key, item.status, said) == ("a1", "ok", [])
    assert task.facets == {
        "category": "Writing",
        "category_2": "Copy",
        "pay_type": "fixed",
        "needs": "self_contained",
        "text_kind": "surrogate",
        "duration": "Less than 1 week",
        "expertise": "Intermediate",
        "posted_at": "2025-03-07",
        "stratum": "Writing 2025-03",
        "skills": ["copywriting", "SEO"],
        "split": ["benchmark", "subset400"],
        "value_basis": "posted",
        "contract_value_usd": 100.0,
    }
    assert task.price.model_dump(exclude_none=True) == {
        "amount": "100",
        "currency": "USD",
        "usd": "100",
        "basis": "posted",
        "rate_type": "fixed",
    }
    for told in ("# Rewrite texts\n", TEXT.strip(), "fixed price, 100 USD", "copywriting, SEO", "/workspace/output"):
        assert told in task.instruction
    assert (task.network, task.client, task.visible, task.hidden) == ("none", None, [], [])
    [spec] = task.graders
    registry.check(spec, task)
    assert [judge["model"] for judge in spec.settings["judges"]] == ["acme/j-1", "acme/j-2"]
    assert [g["facet"] for g in imported.manifest["groupings"]] == ["category", "pay_type", "needs", "split"]


def test_the_same_postings_as_csv_jsonl_and_folders(tmp_path: Path) -> None:
    rows = [posting(item_id=f"i{n}", skills=["a", "b"], needs="medium") for n in range(3)]
    table(tmp_path / "rows.json", *rows)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "skills": "a, b"} for row in rows)
    for row in rows:
        folder = tmp_path / "folders" / row["item_id"]
        folder.mkdir(parents=True)
        kept = ("title", "description", "budget")
        (folder / "posting.json").write_text(json.dumps({k: row[k] for k in kept}))
        (folder / "metadata.json").write_text(json.dumps({k: v for k, v in row.items() if k not in kept}))
    seen: list[Any] = []
    for source in ("rows.json", "rows.jsonl", "rows.csv", "folders"):
        with read("payworthy", tmp_path / source) as imported:
            checked(imported)
            seen.append(imported.items)
    assert [item["key"] for item in seen[0]] == ["i0", "i1", "i2"]
    assert seen[0] == seen[1] == seen[2] == seen[3]


def test_a_mapping_says_what_the_source_calls_things(tmp_path: Path) -> None:
    row = {"uid": 7, "body": {"text": TEXT, "tags": "x; y"}, "pay": "F", "money": {"usd": 50}, "label": "CF"}
    mapping = tmp_path / "mapping.toml"
    mapping.write_text("""
[fields]
item_id = "uid"
description = "/body/text"
pay_type = { from = "pay", map = { F = "fixed", H = "hourly" } }
budget = "/money/usd"
skills = { from = "/body/tags", split = ";" }
needs = { from = "label", map = { CF = "client_files" } }
split = { value = "benchmark" }
""")
    item, said, _ = one(tmp_path, row, mapping=mapping)
    assert (item.key, said) == ("7", LATER)
    assert item.task.facets["needs"] == "client_files"
    assert item.task.facets["skills"] == ["x", "y"]
    assert (item.task.facets["split"], item.task.price.usd) == ("benchmark", "50")
    item, said, _ = one(tmp_path, {**row, "label": "?", "pay": "X"}, mapping=mapping)
    assert (item.status, said) == ("quarantined", ["bad_field", "bad_field", "bad_item"])
    mapping.write_text('[fields]\nitem_id = "uid"\ncolour = "x"\n')
    with pytest.raises(InvalidInput, match=r"(?s)unknown field 'colour'.*'description' is missing"):
        one(tmp_path, row, mapping=mapping)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"description": "Too short."}, ["short_description"]),
        ({"description": " " * 300}, ["bad_item"]),
        ({"description": None}, ["bad_item"]),
        ({"description": 7}, ["bad_item"]),
        ({"budget": 1_000_000.01}, ["absurd_budget"]),
        ({"pay_type": "hourly", "budget": None, "hourly_max": 5001}, ["absurd_rate"]),
        ({"pay_type": "barter"}, ["bad_item"]),
        ({"item_id": True}, ["bad_item"]),
        ({"description": TEXT + "\0"}, ["bad_item"]),
    ],
)
def test_what_drops_an_item_is_said_and_counted(tmp_path: Path, fields: dict[str, Any], said: list[str]) -> None:
    item, found, imported = one(tmp_path, posting(**fields))
    assert item.status == "quarantined"
    assert [p for p in found if p not in ("grader_later", "no_price")] == said
    assert imported.counts() == {"quarantined": 1}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"needs": "everything"}, ["bad_field"]),
        ({"posted_at": "in May"}, ["bad_field"]),
        ({"budget": "much"}, ["bad_field", "no_price"]),
        ({"currency": "doubloons"}, ["bad_field"]),
        ({"category": ["x"]}, ["bad_field"]),
        ({"category": "a\0b", "skills": ["x", "\ud800"]}, ["bad_field", "bad_field"]),
        ({"budget": None}, ["no_price"]),
        ({"pay_type": "hourly", "hourly_min": 30, "hourly_max": 20}, ["bad_price", "no_price"]),
        ({"pay_type": "hourly", "hourly_min": 30}, ["no_price"]),
        ({"description": TEXT * 20}, ["description_cut"]),
        ({"facts": "\ud800"}, ["bad_facts"]),
        ({"facts_file": "../secret"}, ["bad_facts"]),
        ({"deliverable": "/etc"}, ["no_deliverable"]),
        ({"deliverable": "gone"}, ["no_deliverable"]),
    ],
)
def test_what_an_item_can_do_without(tmp_path: Path, fields: dict[str, Any], said: list[str]) -> None:
    item, found, imported = one(tmp_path, posting(**fields))
    assert item.status == "ok"
    assert sorted(found) == sorted([*said, *LATER])
    assert imported.delivered == []


def test_numbers_that_are_none(tmp_path: Path) -> None:
    source = tmp_path / "rows.json"
    row = json.dumps(posting(budget=0))
    source.write_text(f"[{row.replace(': 0', ': Infinity')}, {row.replace(': 0', ': NaN').replace('a1', 'a2')}]")
    with read("payworthy", source) as imported:
        checked(imported)
    assert [i["status"] for i in imported.items] == ["quarantined", "ok"]
    assert "not_finite" in problems(imported, "a1")
    assert problems(imported, "a2") == ["no_price", *LATER]


def test_an_hourly_job_is_worth_its_rate_times_the_hours_of_a_named_table(tmp_path: Path) -> None:
    fields = {"pay_type": "hourly", "budget": None, "hourly_min": 20, "hourly_max": 30.5, "duration": "1 TO 3 MONTHS"}
    item, said, imported = one(tmp_path, posting(**fields))
    assert (item.task.price.usd, item.task.price.basis, item.task.price.rate_type) == ("4040", "imputed", "hourly")
    assert "20 to 30.5 USD" in item.task.instruction
    assert said == LATER
    assert imported.manifest["labels"]["duration_factors"].startswith("workstead-1:")
    factors = tmp_path / "factors.json"
    factors.write_text('{"name": "mine", "hours": {"1 to 3 months": 10}}')
    item, _, imported = one(tmp_path, posting(**fields), factors=factors)
    assert item.task.price.usd == "252.5"
    assert imported.manifest["labels"]["duration_factors"].startswith("mine:")
    item, said, _ = one(tmp_path, posting(**fields, contract_value=999), factors=factors)
    assert (item.task.price.usd, item.task.facets["value_basis"]) == ("999", "given")
    item, said, _ = one(tmp_path, posting(**{**fields, "duration": "for ever"}), factors=factors)
    assert (item.task.price, said) == (None, ["no_price", *LATER])
    factors.write_text('{"name": "mine", "hours": {"x": -1}}')
    with pytest.raises(InvalidInput, match="/hours/x"):
        one(tmp_path, posting(), factors=factors)


def test_facts_are_the_clients_in_the_split_of_the_tool_agent(tmp_path: Path) -> None:
    facts = ["The boots are called Fjell.", "No emojis."]
    item, _, _ = one(tmp_path, posting(split="benchmark,tool500", facts=facts), client="acme/client", messages="3")
    assert item.task.client.model_dump() == {"facts": "client-facts.md", "max_messages": 3, "model": "acme/client"}
    with read("payworthy", tmp_path / "rows.json") as imported:
        [hidden] = imported.items[0]["task"]["hidden"]
        assert imported.files[hidden["sha256"]].read_text() == "- The boots are called Fjell.\n- No emojis.\n"
    assert "Fjell" not in item.task.instruction
    item, said, _ = one(tmp_path, posting(split="benchmark", facts=facts))
    assert (item.task.client, [f.path for f in item.task.hidden]) == (None, ["client-facts.md"])
    item, said, _ = one(tmp_path, posting(split="tool500"))
    assert (item.task.client.facts, said) == (None, [*LATER, "no_facts"])


def test_works_of_others_come_along_and_are_no_reference(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        folder = tmp_path / "set" / name
        (folder / "deliverable/texts").mkdir(parents=True)
        (folder / "posting.json").write_text(json.dumps(posting(item_id=name)))
        (folder / "deliverable/texts/spring.docx").write_text(f"PK {name}")
    (tmp_path / "set/two/deliverable/link").symlink_to("/etc/passwd")
    (tmp_path / "set/three/deliverable/texts/spring.docx").unlink()
    (tmp_path / "set/facts.txt").write_text("x")
    with read("payworthy", tmp_path / "set") as imported:
        checked(imported)
        found = {work.key: [ref["path"] for ref in work.files] for work in imported.delivered}
        assert found == {"one": ["texts/spring.docx"]}
        [ref] = imported.delivered[0].files
        assert imported.works[ref["sha256"]].read_text() == "PK one"
        assert imported.files == {}
        assert all(item["task"]["hidden"] == [] for item in imported.items)
        assert "bad_deliverable" in problems(imported, "two")
        assert {item["status"] for item in imported.items} == {"ok"}
        assert imported.notes == ["facts.txt: is no folder of an item; not read"]


def test_broken_folders_cost_themselves_only(tmp_path: Path) -> None:
    for name in ("good", "cut", "binary", "piped", "linked"):
        (tmp_path / "set" / name).mkdir(parents=True)
        (tmp_path / "set" / name / "posting.json").write_text(json.dumps(posting(item_id=name)))
    (tmp_path / "set/cut/posting.json").write_text('{"item_id": "cut"')
    (tmp_path / "set/binary/notes.txt").write_bytes(b"\xff\xfe\0")
    os.mkfifo(tmp_path / "set/piped/facts.md")
    (tmp_path / "set/linked/posting.json").unlink()
    (tmp_path / "set/linked/posting.json").symlink_to(tmp_path / "set/good/posting.json")
    (tmp_path / "set/link").symlink_to(tmp_path / "set/good")
    (tmp_path / "set/empty").mkdir()
    with read("payworthy", tmp_path / "set") as imported:
        checked(imported)
        found = {item["key"]: item["status"] for item in imported.items}
    assert found == {
        **dict.fromkeys(("cut", "binary", "piped", "linked", "link", "empty"), "quarantined"),
        "good": "ok",
    }


def test_the_same_id_twice(tmp_path: Path) -> None:
    source = table(tmp_path / "rows.json", posting(), posting(title="Another"))
    with read("payworthy", source) as imported:
        checked(imported)
    assert [(i["key"], i["status"]) for i in imported.items] == [("a1", "ok"), ("a1~2", "quarantined")]


def test_what_is_no_source_at_all(tmp_path: Path) -> None:
    (tmp_path / "rows.xyz").write_text("")
    (tmp_path / "empty.json").write_text("[]")
    (tmp_path / "empty").mkdir()
    for name in ("rows.xyz", "empty.json", "empty", "missing.csv"):
        with pytest.raises(InvalidInput):
            read("payworthy", tmp_path / name)


@pytest.mark.parametrize("path", ["../outside", "/outside", "link/secret", "a/../../outside", "folder/../../outside"])
def test_paths_of_a_row_never_lead_out_of_the_source(tmp_path: Path, path: str) -> None:
    (tmp_path / "set/folder").mkdir(parents=True)
    (tmp_path / "outside").write_text("secret")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret").write_text("secret")
    (tmp_path / "set/link").symlink_to(tmp_path / "elsewhere")
    path = path.replace("/outside", f"{tmp_path}/outside") if path.startswith("/") else path
    source = table(tmp_path / "set/rows.json", posting(facts_file=path, deliverable=path))
    with read("payworthy", source) as imported:
        assert checked(imported).items[0].status == "ok"
        assert (imported.files, imported.works) == ({}, {})
    assert {"bad_facts", "no_deliverable"} <= set(problems(imported, "a1"))
