"""Remote Labor Index: who sees what, prices and hours as they come, and every broken project beside the good ones."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.graders import registry
from tests.unit.workstead.importers.sets import checked, problems, read
from workstead.importers.amounts import parse_amount
from workstead.importers.rli.instruction import GIVEN, OUTPUT_RULE
from workstead.task_dir import InvalidInput

BRIEF = "# Logo animation\n\n## Work description\nAnimate `inputs/logo.svg`.\r\n\n## Deliverables\n- `intro.mp4`\n"
UNKNOWN = ["no_price", "no_hours"]


def add(root: Path, name: str = "public_001", metadata: Any = None, *, inputs: bool = True) -> Path:
    folder = root / name
    (folder / "project").mkdir(parents=True)
    (folder / "project/brief.md").write_bytes(BRIEF.encode())
    if inputs:
        (folder / "project/inputs/fonts").mkdir(parents=True)
        (folder / "project/inputs/logo.svg").write_text("<svg/>")
        (folder / "project/inputs/fonts/Über uns.ttf").write_text("font")
    (folder / "human_deliverable/src").mkdir(parents=True)
    (folder / "human_deliverable/intro.mp4").write_bytes(b"\0\0\0\x18ftypmp42")
    (folder / "human_deliverable/src/project.aep").write_text("aep")
    if metadata is not None:
        text = metadata if isinstance(metadata, str) else json.dumps(metadata)
        (folder / "project/metadata.json").write_text(text)
    return folder


def test_a_project(tmp_path: Path) -> None:
    fields = {
        "category": "Video",
        "subcategory": "Animation",
        "evaluator_note": "The loop must be seamless.",
        "human_completion_hours": 11.5,
        "total_project_cost": 200,
    }
    add(tmp_path, metadata=fields)
    with read("rli", tmp_path) as imported:
        task = checked(imported).items[0].task
        assert task is not None
        hidden = {f.path: imported.files[f.sha256].read_bytes() for f in task.hidden}
    assert problems(imported, "public_001") == []
    assert [f.path for f in task.visible] == ["inputs/fonts/Über uns.ttf", "inputs/logo.svg"]
    reference = {"intro.mp4": b"\0\0\0\x18ftypmp42", "src/project.aep": b"aep"}
    assert {p.removeprefix("reference/"): b for p, b in hidden.items() if p.startswith("reference/")} == reference
    assert {p.removeprefix("solution/output/"): b for p, b in hidden.items() if p.startswith("solution/")} == reference
    assert hidden["evaluator_note.md"] == b"The loop must be seamless."
    assert json.loads(hidden["source/metadata.json"]) == fields
    assert task.price is not None
    assert (task.price.amount, task.price.usd, task.price.basis) == ("200", "200", "reported")
    assert task.human_time_s == 11.5 * 3600
    assert task.facets == {
        "split": "public",
        "inputs": 2.0,
        "category": "Video",
        "subcategory": "Animation",
        "price_usd": 200.0,
        "hours": 11.5,
        "hours_basis": "reported",
    }
    limits = task.limits
    assert (limits.wall_clock_s, limits.cpus, limits.memory_bytes) == (3600, 4, 8 << 30)
    assert (task.name, task.network, task.environment) == ("rli/public_001", "none", "workbench_full")
    assert [g.method for g in task.graders] == ["human_panel"]


def test_the_brief_is_told_character_by_character_and_nothing_hidden_is(tmp_path: Path) -> None:
    add(tmp_path, metadata={"evaluator_note": "secret note", "total_project_cost": 4711})
    add(tmp_path, "public_002", inputs=False)
    with read("rli", tmp_path) as imported:
        with_inputs, without = (item["task"] for item in imported.items)
    assert with_inputs["instruction"].startswith(BRIEF)
    added = with_inputs["instruction"].removeprefix(BRIEF)
    assert added == OUTPUT_RULE.format(material=GIVEN)
    assert "/workspace/output" in added
    for secret in ("secret note", "4711", "human_deliverable", "reference/"):
        assert secret not in with_inputs["instruction"]
    assert "comes without any" in without["instruction"]
    assert (without["visible"], without["facets"]["inputs"]) == ([], 0.0)


@pytest.mark.parametrize(
    ("given", "amount", "basis", "ends"),
    [
        (200, "200", "reported", (None, None)),
        (199.99, "199.99", "reported", (None, None)),
        ("$1,200", "1200", "reported", (None, None)),
        ("200-500", "350", "midpoint", ("200", "500")),
        ("$200 \u2013 $501", "350.5", "midpoint", ("200", "501")),
        ({"min": 1, "max": 2}, "1.5", "midpoint", ("1", "2")),
        ([10, 30], "20", "midpoint", ("10", "30")),
        (0, "0", "reported", (None, None)),
    ],
)
def test_prices(tmp_path: Path, given: Any, amount: str, basis: str, ends: tuple[str | None, str | None]) -> None:
    add(tmp_path, metadata={"total_project_cost": given, "human_completion_hours": "10 to 13 hours"})
    with read("rli", tmp_path) as imported:
        task = checked(imported).items[0].task
    assert task is not None
    assert task.price is not None
    assert (task.price.amount, task.price.basis, (task.price.min, task.price.max)) == (amount, basis, ends)
    assert (task.human_time_s, task.facets["hours_basis"]) == (11.5 * 3600, "midpoint")


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"total_project_cost": "$500+"}, ["bad_price", "no_hours"]),
        ({"total_project_cost": -1}, ["bad_price", "no_hours"]),
        ({"total_project_cost": True}, ["bad_price", "no_hours"]),
        ('{"total_project_cost": NaN, "human_completion_hours": NaN}', UNKNOWN),
        ('{"total_project_cost": Infinity}', ["bad_price", "no_hours"]),
        ({"total_project_cost": 5, "currency": "doubloons"}, ["bad_price", "no_hours"]),
        ({"total_project_cost": [5, 2], "human_completion_hours": 1e9}, ["bad_price", "bad_hours"]),
        ({"total_project_cost": 5, "human_completion_hours": "many"}, ["bad_hours"]),
        ({"category": 7, "evaluator_note": ["x"]}, ["bad_metadata", *UNKNOWN, "bad_metadata"]),
        ({"evaluator_note": "x" * 20_000}, ["bad_metadata", *UNKNOWN]),
        ({"total_project_cost": 5, "price_kind": "guess"}, ["bad_metadata", "no_hours"]),
        ("{", ["bad_metadata", *UNKNOWN]),
        ("[]", ["bad_metadata", *UNKNOWN]),
        (None, UNKNOWN),
    ],
)
def test_metadata_never_costs_the_project(tmp_path: Path, metadata: Any, said: list[str]) -> None:
    add(tmp_path, metadata=metadata)
    with read("rli", tmp_path) as imported:
        assert checked(imported).items[0].task is not None
        assert imported.items[0]["status"] == "ok"
        assert problems(imported, "public_001") == said


def test_another_currency_has_no_dollars(tmp_path: Path) -> None:
    add(tmp_path, metadata={"total_project_cost": 5, "currency": "EUR", "price_kind": "professional_estimate"})
    with read("rli", tmp_path) as imported:
        task = checked(imported).items[0].task
    assert task is not None
    assert task.price is not None
    assert (task.price.currency, task.price.usd, task.price.basis) == ("EUR", None, "estimated")
    assert "price_usd" not in task.facets


def test_metadata_of_the_user_goes_over_the_projects_own(tmp_path: Path) -> None:
    add(tmp_path / "set", metadata={"total_project_cost": 5, "category": "Video"})
    add(tmp_path / "set", "arena-rig")
    given = tmp_path / "metadata.json"
    given.write_text('{"public_001": {"total_project_cost": 7}, "arena-rig": {"evaluator_note": "n"}, "gone": {}}')
    with read("rli", tmp_path / "set", metadata=given, denominator="240", split="private") as imported:
        manifest = checked(imported)
        rig, first = (item.task for item in manifest.items)
        assert imported.notes == ["metadata: there is no project 'gone'"]
    assert rig is not None
    assert first is not None
    assert first.price is not None
    assert (first.price.amount, first.facets["category"]) == ("7", "Video")
    assert "evaluator_note.md" in {f.path for f in rig.hidden}
    assert [t.facets["split"] for t in (rig, first)] == ["private", "private"]
    assert manifest.labels == {"network": "none", "denominator": "240"}
    given.write_text('{"public_001": 7}')
    with pytest.raises(InvalidInput, match="project → object"):
        read("rli", tmp_path / "set", metadata=given)


def test_the_split_is_told_by_the_name(tmp_path: Path) -> None:
    add(tmp_path, "public_010")
    add(tmp_path, "arena-rig")
    with read("rli", tmp_path) as imported:
        assert [i["task"]["facets"]["split"] for i in imported.items] == ["private", "public"]


def test_a_judge_compares_with_the_reference_beside_people(tmp_path: Path) -> None:
    add(tmp_path)
    with read("rli", tmp_path, judge="acme/judge-1") as imported:
        task = checked(imported).items[0].task
    assert task is not None
    for spec in task.graders:
        registry.check(spec, task)
    assert [g.method for g in task.graders] == ["human_panel", "pairwise"]
    with read("rli", tmp_path, judge="acme/judge-1", people="no") as imported:
        assert [g["method"] for g in imported.items[0]["task"]["graders"]] == ["pairwise"]
    with read("rli", tmp_path, people="no") as imported:
        assert problems(imported, "public_001") == [*UNKNOWN, "grader_later"]


def test_the_web_but_not_where_the_answers_lie(tmp_path: Path) -> None:
    add(tmp_path / "set")
    deny = tmp_path / "deny"
    deny.write_text("*.Answers.example.test\nleaks.example.test\n")
    with read("rli", tmp_path / "set", network="web", deny=deny) as imported:
        task = checked(imported).items[0].task
        assert imported.notes == []
    assert task is not None
    assert (task.network, task.deny_hosts) == ("web", ["*.answers.example.test", "leaks.example.test"])
    with read("rli", tmp_path / "set", network="web") as imported:
        assert "without a deny list" in imported.notes[0]
    deny.write_text("answers.example.test:8080\n")
    with pytest.raises(InvalidInput, match="no name of a host"):
        read("rli", tmp_path / "set", network="web", deny=deny)


def test_broken_projects_cost_themselves_only(tmp_path: Path) -> None:
    add(tmp_path)
    (add(tmp_path, "public_002") / "project/brief.md").write_text(" \n")
    (add(tmp_path, "public_003") / "project/brief.md").write_bytes(b"\xff\xfe")
    (add(tmp_path, "public_004") / "project/brief.md").unlink()
    (add(tmp_path, "public_005") / "project/inputs/link").symlink_to("/etc/passwd")
    os.mkfifo(add(tmp_path, "public_006") / "human_deliverable/pipe")
    (tmp_path / "public_007").mkdir()
    (tmp_path / "public_008").symlink_to(tmp_path / "public_001")
    (tmp_path / "public_009").write_text("")
    (add(tmp_path, "public_010") / "project/brief.md").write_text("a\0b")
    linked = add(tmp_path, "public_011", inputs=False) / "project/inputs"
    linked.symlink_to("/etc")
    (tmp_path / "README.md").write_text("card")
    (tmp_path / ".cache").mkdir()
    (tmp_path / "public_001/notes.txt").write_text("")
    (tmp_path / "public_001/project/.DS_Store").write_text("")
    with read("rli", tmp_path) as imported:
        checked(imported)
        found = {i["key"]: problems(imported, i["key"]) for i in imported.items}
        ok = [i["key"] for i in imported.items if i["status"] == "ok"]
    assert found == {
        "public_001": ["unread_entry", "unread_entry", *UNKNOWN],
        "public_002": ["bad_brief"],
        "public_003": ["bad_brief"],
        "public_004": ["bad_brief"],
        "public_005": ["bad_file"],
        "public_006": ["bad_file"],
        "public_007": ["no_project_folder"],
        "public_008": ["symbolic_link"],
        "public_009": ["bad_file"],
        "public_010": [*UNKNOWN, "unusable_task"],
        "public_011": ["bad_file"],
    }
    assert ok == ["public_001"]
    assert imported.notes == [".cache: is no project; not read", "README.md: is no project; not read"]


def test_a_project_without_a_reference_is_kept_and_not_run(tmp_path: Path) -> None:
    folder = add(tmp_path)
    for path in sorted((folder / "human_deliverable").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with read("rli", tmp_path) as imported:
        item = checked(imported).items[0]
    assert item.task is not None
    assert (item.status, problems(imported, "public_001")) == ("quarantined", [*UNKNOWN, "no_reference"])


def test_what_is_no_source_at_all(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "other", tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(InvalidInput, match=r"project/brief\.md"):
            read("rli", root)


@given(st.text(max_size=40) | st.integers() | st.lists(st.integers(), max_size=3) | st.none() | st.booleans())
def test_any_amount_is_an_amount_or_refused(value: Any) -> None:
    for kind in ("money", "hours"):
        try:
            found = parse_amount(value, kind)
        except ValueError:
            continue
        assert 0 <= found.low <= found.middle <= found.high
