"""The sixty synthetic tasks of Freelance: none is contested, programs solve them, and works are as good as they are called."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from demo.benchmarks.gigs import make
from service.graders.test_cases.tests_file import TestsFile
from tests.unit.workstead.importers.sets import checked, read


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("gigs")
    make.make(root)
    make.make_scaffolds(root / "scaffolds")
    return root


def test_sixty_tasks(made: Path) -> None:
    with read("freelance", made / "sixty.json", solutions=made / "solutions") as imported:
        manifest = checked(imported)
        assert [item["problems"] for item in imported.items] == [[]] * 60
        tasks = [item.task for item in manifest.items if item.task is not None]
        shapes = [str(task.facets["shape"]) for task in tasks]
        assert (shapes.count("a"), shapes.count("b")) == (30, 30)
        assert all(task.price is not None and task.price.usd is not None for task in tasks)
        for task in tasks:
            hidden = {ref.path: imported.files[ref.sha256] for ref in task.hidden}
            TestsFile.model_validate_json(hidden["tests.json"].read_text())
    assert len({task.name for task in tasks}) == 60


def output(program: str, given: str) -> str:
    argv = [sys.executable, "-I", "-c", program]
    return subprocess.run(argv, input=given, capture_output=True, text=True, check=True, timeout=60).stdout.rstrip("\n")


def test_programs_give_what_was_worked_out_another_way() -> None:
    # One of each kind, on the test that says most.
    for item, program in list(make.programs())[1::3]:
        test = item["tests"][2]
        assert output(program, test["input"]) == test["output"].rstrip("\n"), item["title"]


def works(made: Path, folder: Path, title: str, variant: str) -> dict[str, str]:
    folder.mkdir()
    (folder / "instruction.md").write_text(f"# {title}\n")
    argv = [sys.executable, made / "scaffolds/gigs/solve.py", variant, folder / "instruction.md", folder / "output"]
    subprocess.run(argv, capture_output=True, check=False, timeout=60)
    return {path.name: path.read_text() for path in (folder / "output").glob("*")}


def test_works_are_as_good_as_they_are_called(made: Path, tmp_path: Path) -> None:
    item, program = next(make.programs())
    tests: list[dict[str, str]] = item["tests"]
    known: dict[str, Any] = json.loads((made / "scaffolds/gigs/known.json").read_text())
    title, right = next((t, k["answers"]) for t, k in known.items() if "answers" in k)
    found: dict[str, tuple[dict[str, str], dict[str, str]]] = {}
    for variant in make.VARIANTS:
        one = works(made, tmp_path / f"a-{variant}", item["title"], variant)
        two = works(made, tmp_path / f"b-{variant}", title, variant)
        found[variant] = (one, two)
    assert found["right"][0] == {"solution.py": program}
    assert json.loads(found["right"][1]["answers.json"]) == right
    partial = found["partial"]
    passed = [output(partial[0]["solution.py"], t["input"]) == t["output"] for t in tests]
    assert passed == [True, True, False, False]
    half = json.loads(partial[1]["answers.json"])
    assert sum(half[name] == text for name, text in right.items()) == 4
    assert output(found["wrong"][0]["solution.py"], "") == "no idea"
    assert not set(json.loads(found["hostile"][1]["answers.json"]).values()) & set(right.values())
    with pytest.raises(ValueError, match=r"delimiter|Unterminated"):
        json.loads(found["broken"][1]["answers.json"])
    assert found["nothing"] == found["crash"] == ({}, {})
