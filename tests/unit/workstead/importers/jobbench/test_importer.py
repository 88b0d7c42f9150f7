"""JobBench: both layouts, what is hidden, and every kind of broken task named and left standing beside the good ones."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.graders import registry
from tests.unit.workstead.importers.sets import checked, problems, read
from workstead.importers.drafts import Draft
from workstead.importers.jobbench.instruction import INSTRUCTION, missing_files, named_files
from workstead.importers.jobbench.rubrics import read_rubrics
from workstead.task_dir import InvalidInput

GOOD = {"rubrics": [{"rubric": "r", "weight": 10, "criterion": ["c"]}]}
NOTES = ["grader_later"]


def add_task(root: Path, place: str = "dataset/clerks/task1", rubrics: Any = GOOD) -> Path:
    folder = root / place
    (folder / "task_folder/sub").mkdir(parents=True)
    (folder / "task_folder/TASK_INSTRUCTIONS.txt").write_text("Do it.\n\nReference Files\n- a b.csv\n")
    (folder / "task_folder/sub/a b.csv").write_text("1")
    (folder / "RUBRICS.json").write_text(rubrics if isinstance(rubrics, str) else json.dumps(rubrics))
    (folder / "task_card.md").write_text("the answer is 42")
    return folder


def one(root: Path) -> tuple[dict[str, Any], list[str]]:
    with read("jobbench", root) as imported:
        checked(imported)
        return imported.items[0], problems(imported, imported.items[0]["key"])


def test_both_layouts_give_the_same_tasks(tmp_path: Path) -> None:
    published, local = tmp_path / "published", tmp_path / "local"
    for place in ("dataset/clerks/task1", "dataset_easy/clerks/task1", "dataset/main/task2"):
        add_task(published, place)
    shutil.copytree(published / "dataset", local / "dataset/main")
    shutil.copytree(published / "dataset_easy", local / "dataset/easy")
    (local / "eval_result/eval_x").mkdir(parents=True)
    keys = ["main--clerks--task1", "main--main--task2", "easy--clerks--task1"]
    for root in (published, local, local / "dataset"):
        with read("jobbench", root) as imported:
            checked(imported)
            assert [i["key"] for i in imported.items] == keys
            assert [i["status"] for i in imported.items] == ["ok"] * 3


def test_a_task(tmp_path: Path) -> None:
    folder = add_task(tmp_path)
    (folder / "files_required_to_search").mkdir()
    (folder / "files_required_to_search/found online.pdf").write_text("%PDF")
    with read("jobbench", tmp_path) as imported:
        task = checked(imported).items[0].task
        assert task is not None
        assert [f.path for f in task.visible] == ["task_folder/TASK_INSTRUCTIONS.txt", "task_folder/sub/a b.csv"]
        assert {f.path for f in task.hidden} == {
            *("source/RUBRICS.json", "source/task_card.md", "rubrics.json"),
            "files_required_to_search/found online.pdf",
        }
        rubrics = next(f for f in task.hidden if f.path == "rubrics.json")
        assert json.loads(imported.files[rubrics.sha256].read_text()) == GOOD
        assert task.facets == {"occupation": "clerks", "split": "main", "reference_files": 1.0, "withheld": "yes"}
        limits = task.limits
        assert (limits.cpus, limits.memory_bytes, limits.disk_bytes, limits.wall_clock_s) == (
            4,
            8 << 30,
            20 << 30,
            3600,
        )
        assert (task.environment, task.graders, task.network) == ("workbench_full", [], "web")
        assert problems(imported, "main--clerks--task1") == NOTES


def test_the_instruction_names_the_fixed_paths() -> None:
    for path in ("/workspace/task_folder/TASK_INSTRUCTIONS.txt", "/workspace/output"):
        assert path in INSTRUCTION
    for secret in ("RUBRICS", "rubric", "task_card", "files_required"):
        assert secret not in INSTRUCTION


def test_categories_make_columns(tmp_path: Path) -> None:
    add_task(tmp_path)
    add_task(tmp_path, "dataset/jurists/task1")
    mapping = tmp_path / "categories.json"
    mapping.write_text('{"clerks": "Sales and Related", "jurists": "Legal", "pilots": "Transportation"}')
    with read("jobbench", tmp_path, categories=mapping) as imported:
        manifest = checked(imported)
    assert manifest.groupings[0].merges == {"Others": ["Legal", "Sales and Related"]}
    assert [i.task.facets["category"] for i in manifest.items if i.task] == ["Sales and Related", "Legal"]
    mapping.write_text('["clerks"]')
    with pytest.raises(InvalidInput, match="occupation → category"):
        read("jobbench", tmp_path, categories=mapping)


BAD: list[tuple[Any, str]] = [
    ("{", "RUBRICS.json"),
    ('{"rubrics": []}', "RUBRICS.json#/rubrics"),
    ("[]", "RUBRICS.json#"),
    ({"rubrics": [{"rubric": "r", "weight": True, "criterion": ["c"]}]}, "RUBRICS.json#/rubrics/0/weight"),
    ({"rubrics": [{"rubric": "r", "weight": -1, "criterion": ["c"]}]}, "RUBRICS.json#/rubrics/0/weight"),
    ('{"rubrics": [{"rubric": "r", "weight": Infinity, "criterion": ["c"]}]}', "RUBRICS.json#/rubrics/0/weight"),
    ('{"rubrics": [{"rubric": "r", "weight": NaN, "criterion": ["c"]}]}', "RUBRICS.json#/rubrics/0/weight"),
    ({"rubrics": [{"rubric": "r", "weight": "1", "criterion": ["c"]}]}, "RUBRICS.json#/rubrics/0/weight"),
    ({"rubrics": [{"rubric": " ", "weight": 1, "criterion": ["c"]}]}, "RUBRICS.json#/rubrics/0/rubric"),
    ({"rubrics": [{"rubric": "r", "weight": 1, "criterion": []}]}, "RUBRICS.json#/rubrics/0/criterion"),
    ({"rubrics": [{"rubric": "r", "weight": 1, "criterion": ["c", ""]}]}, "RUBRICS.json#/rubrics/0/criterion/1"),
    ({"rubrics": [{"rubric": "r", "weight": 0, "criterion": ["c"]}]}, "RUBRICS.json"),
]


@pytest.mark.parametrize(("rubrics", "where"), BAD)
def test_bad_rubrics(tmp_path: Path, rubrics: Any, where: str) -> None:
    add_task(tmp_path, rubrics=rubrics)
    item, said = one(tmp_path)
    assert (item["status"], said) == ("quarantined", ["bad_rubrics", *NOTES])
    assert item["problems"][0]["where"] == where
    assert item["task"] is not None


@pytest.mark.parametrize(
    "rubrics",
    [
        {"evaluation_rubrics": [{"rubric": "r", "weight": 10, "criterion": ["c"]}]},
        {"rubrics": [{"rubric": "r", "weight": 10.0, "criterion": "c", "note": None}], "version": 1},
    ],
)
def test_older_rubrics_come_in_one_form(tmp_path: Path, rubrics: Any) -> None:
    (tmp_path / "RUBRICS.json").write_text(json.dumps(rubrics))
    assert read_rubrics(tmp_path / "RUBRICS.json", Draft("k")) == GOOD


def test_duplicates(tmp_path: Path) -> None:
    twice = {
        "rubrics": [
            {"rubric": "r", "weight": 1, "criterion": ["c", "c"]},
            {"rubric": "r ", "weight": 0, "criterion": "d"},
        ]
    }
    add_task(tmp_path, rubrics=twice)
    item, said = one(tmp_path)
    assert (item["status"], said[:2]) == ("disputed", ["duplicate_rubric", "duplicate_criterion"])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(
    st.sampled_from(["rubrics", "evaluation_rubrics", "rubric", "weight", "criterion"]), x), max_leaves=12))  # fmt: skip
def test_any_rubrics(tmp_path: Path, value: Any) -> None:
    path, draft = tmp_path / "RUBRICS.json", Draft("k")
    path.write_text(json.dumps(value))
    if read_rubrics(path, draft) is None:
        assert draft.status == "quarantined"


def _link(folder: Path) -> None:
    (folder / "task_folder/link.csv").symlink_to("/etc/passwd")


def _folder_link(folder: Path) -> None:
    (folder / "files_required_to_search").symlink_to("/etc")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "task_folder/sub/pipe")


def _backslash(folder: Path) -> None:
    (folder / "task_folder/a\\b").write_text("")


def _undecodable(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/task_folder/\xff.csv")).write_text("")


def _rubrics_link(folder: Path) -> None:
    (folder / "RUBRICS.json").unlink()
    (folder / "RUBRICS.json").symlink_to("/etc/hostname")


def _deep(folder: Path) -> None:
    (folder / "task_folder" / "/".join("d" * 40)).mkdir(parents=True)


@pytest.mark.parametrize("spoil", [_link, _folder_link, _pipe, _backslash, _undecodable, _rubrics_link, _deep])
def test_hostile_entries_cost_their_own_task_only(tmp_path: Path, spoil: Any) -> None:
    spoil(add_task(tmp_path))
    add_task(tmp_path, "dataset/clerks/task2")
    with read("jobbench", tmp_path) as imported:
        checked(imported)
        assert [i["status"] for i in imported.items] == ["quarantined", "ok"]
        assert imported.items[0]["task"] is None
        assert "bad_file" in problems(imported, "main--clerks--task1")
        assert not [path for path in imported.files.values() if path.is_relative_to("/etc")]


@pytest.mark.parametrize(
    ("content", "said"), [(b" \n", "is empty"), (b"\xff", "is not UTF-8"), (None, "No such file or directory")]
)
def test_bad_instructions(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = add_task(tmp_path) / "task_folder/TASK_INSTRUCTIONS.txt"
    file.unlink() if content is None else file.write_bytes(content)
    item, types = one(tmp_path)
    assert (item["status"], types[0], item["problems"][0]["detail"]) == ("quarantined", "bad_instructions", said)


def test_odd_folders(tmp_path: Path) -> None:
    add_task(tmp_path)
    add_task(tmp_path, "dataset/Clerks Two/task1")
    add_task(tmp_path, "dataset/clerks/task01")
    (tmp_path / "dataset/clerks/task3").symlink_to(tmp_path / "dataset/clerks/task1")
    (tmp_path / "dataset/clerks/task4").mkdir()
    (tmp_path / "dataset/.cache").mkdir()
    (tmp_path / "dataset/README.md").write_text("hello")
    (tmp_path / "dataset/clerks/task1/model_output").mkdir()
    with read("jobbench", tmp_path) as imported:
        found = {i["key"]: problems(imported, i["key"]) for i in imported.items}
        notes = imported.notes
    assert found["main--Clerks Two--task1"] == ["bad_occupation_name"]
    assert found["main--clerks--task01"] == ["bad_task_name"]
    assert found["main--clerks--task3"] == ["symbolic_link"]
    assert found["main--clerks--task4"][0] == "no_task_folder"
    assert found["main--clerks--task1"] == ["unread_entry", *NOTES]
    assert sorted(note.split(":")[0] for note in notes) == ["dataset/.cache", "dataset/README.md"]


def test_what_is_no_source_at_all(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InvalidInput, match="no task was found"):
            read("jobbench", root)
    (tmp_path / "dataset/clerks").mkdir(parents=True)
    with pytest.raises(InvalidInput, match="no task was found"):
        read("jobbench", tmp_path)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a.csv\nReference Files\n- one two.xlsx: the orders\n* b.pdf\n3) c.txt\n", ["one two.xlsx", "b.pdf", "c.txt"]),
        ("REFERENCE FILES\n1. \u201cÄ \u2013 x.docx\u201d (old)\n`d.csv`, see e.csv\n", ["Ä - x.docx", "d.csv"]),
        ("Reference files\n- a.csv\n\n## Output\n- out.csv\n", ["a.csv"]),
        ("Reference Files\n- a.csv\n\nDELIVERABLES\n- out.csv\n", ["a.csv"]),
        ("no list, but a.csv\n", []),
    ],
)
def test_named_files(text: str, names: list[str]) -> None:
    assert sorted(named_files(text)) == sorted(names)


def test_missing_files_compares_names_as_people_do() -> None:
    text = "Reference Files\n- sub/A\u0308.csv\n- Gone.pdf\n- x.TXT\n"
    assert missing_files(text, ["task_folder/\u00c4.csv", "task_folder/X.txt"]) == ["Gone.pdf"]


def test_a_judge_makes_the_rubrics_the_grader(tmp_path: Path) -> None:
    add_task(tmp_path)
    with read("jobbench", tmp_path, judge="acme/judge-1") as imported:
        task = checked(imported).items[0].task
        assert task is not None
        [spec] = task.graders
        assert problems(imported, "main--clerks--task1") == []
    registry.check(spec, task)
    assert spec.settings["judges"] == [{"model": "acme/judge-1"}]
    assert "grader_wanted" not in task.labels


def test_the_web_without_the_hosts_of_the_deny_list(tmp_path: Path) -> None:
    add_task(tmp_path / "set")
    deny = tmp_path / "deny"
    deny.write_text("Answers.example.test\n*.leaks.example.test\n")
    with read("jobbench", tmp_path / "set", deny=deny) as imported:
        task = checked(imported).items[0].task
    assert task is not None
    assert (task.network, task.deny_hosts) == ("web", ["answers.example.test", "*.leaks.example.test"])
    with read("jobbench", tmp_path / "set", deny=deny, network="none") as imported:
        task = checked(imported).items[0].task
        assert problems(imported, "main--clerks--task1") == ["grader_later", "network_wanted"]
    assert task is not None
    assert (task.network, task.deny_hosts) == ("none", [])
    deny.write_text("answers.example.test:443\n")
    with pytest.raises(InvalidInput, match="is no name of a host"):
        read("jobbench", tmp_path / "set", deny=deny)


def test_rubrics_that_are_a_pipe_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    folder = add_task(tmp_path)
    (folder / "RUBRICS.json").unlink()
    os.mkfifo(folder / "RUBRICS.json")
    item, said = one(tmp_path)
    assert (item["status"], said) == ("quarantined", ["bad_file", "bad_rubrics"])
