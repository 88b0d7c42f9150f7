"""A pinned revision: which file differs is said, and costs its own task only."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.workstead.importers.jobbench.test_importer import NOTES, add_task
from tests.unit.workstead.importers.sets import checked, problems, read
from workstead.task_dir import InvalidInput


def pin(root: Path, target: Path, **changed: Any) -> Path:
    files = {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    target.write_text(json.dumps({"version": 1, "repo_id": "a/b", "revision": "5" * 40, "files": files, **changed}))
    return target


def test_what_is_pinned_is_read(tmp_path: Path) -> None:
    for place in ("dataset/clerks/task1", "dataset_easy/clerks/task1"):
        add_task(tmp_path / "set", place)
    pins = pin(tmp_path / "set", tmp_path / "pins.json")
    # A local copy names its folders otherwise; the pins have the repository's paths.
    (tmp_path / "set/dataset").rename(tmp_path / "set/main")
    (tmp_path / "set/dataset_easy").rename(tmp_path / "set/easy")
    with read("jobbench", tmp_path / "set", pins=pins) as imported:
        manifest = checked(imported)
        assert (manifest.source.revision, manifest.version) == ("5" * 40, "5" * 12)
        assert [problems(imported, item.key) for item in manifest.items] == [NOTES, NOTES]
        assert imported.notes == []


def test_what_differs_costs_its_task(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        add_task(tmp_path / "set", f"dataset/clerks/task{number}")
    pins = pin(tmp_path / "set", tmp_path / "pins.json")
    (tmp_path / "set/dataset/clerks/task1/task_card.md").write_text("the answer is 43")
    (tmp_path / "set/dataset/clerks/task2/task_folder/new.csv").write_text("2")
    (tmp_path / "set/dataset/clerks/task3/task_card.md").unlink()
    with read("jobbench", tmp_path / "set", pins=pins) as imported:
        checked(imported)
        assert [item["status"] for item in imported.items] == ["quarantined", "ok", "ok"]
        found = [problems(imported, item["key"]) for item in imported.items]
        assert found == [["digest_differs"], ["not_pinned", *NOTES], NOTES]
        assert imported.notes == ["dataset/clerks/task3/task_card.md: is pinned and was not read"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"version": 2}, "/version"),
        ({"revision": ""}, "/revision"),
        ({"files": {"a": "no digest"}}, "/files/a"),
        ({"files": []}, "/files"),
    ],
)
def test_bad_pins(tmp_path: Path, value: Any, said: str) -> None:
    add_task(tmp_path / "set")
    with pytest.raises(InvalidInput, match=said):
        read("jobbench", tmp_path / "set", pins=pin(tmp_path / "set", tmp_path / "pins.json", **value))


def test_one_revision_only(tmp_path: Path) -> None:
    add_task(tmp_path / "set")
    with pytest.raises(InvalidInput, match="option revision says other"):
        read("jobbench", tmp_path / "set", pins=pin(tmp_path / "set", tmp_path / "pins.json"), revision="other")
