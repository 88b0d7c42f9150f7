"""The synthetic JobBench set: eight tasks over four categories and more, and what its judge goes by."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from demo.benchmarks.desk import make
from demo.benchmarks.make import make_jobbench
from service.models.scripted.scenario_file import load
from tests.unit.workstead.importers.sets import checked, read

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("desk")
    make_jobbench(root / "jobbench")
    make.make_scaffolds(root / "scaffolds")
    return root


def test_eight_tasks_over_four_categories(made: Path) -> None:
    with read("jobbench", made / "jobbench", categories=made / "jobbench/categories.json", judge="a/b") as imported:
        tasks = [item.task for item in checked(imported).items if item.task is not None and item.status == "ok"]
    assert len(tasks) == 8
    assert len({str(task.facets["category"]) for task in tasks}) >= 4
    assert {str(task.facets["split"]) for task in tasks} == {"main", "easy"}
    formats = {Path(ref.path).suffix for task in tasks for ref in task.visible}
    assert formats >= {".xlsx", ".docx", ".pdf", ".csv", ".sqlite", ".png", ".txt"}


def solved(made: Path, job: make.Job, variant: str, workspace: Path) -> str:
    """Run a variant as a sandbox would; return the texts of what it delivered."""
    (workspace / "task_folder").mkdir(parents=True)
    (workspace / "task_folder/TASK_INSTRUCTIONS.txt").write_text(job["instruction"].lstrip())
    argv = [sys.executable, "-m", "demo.benchmarks.desk.solve", variant, str(workspace / "output")]
    kit = workspace / ".home/kit/demo/benchmarks"
    for name in (*make.KIT, make.JOBS):
        (kit / name).parent.mkdir(parents=True, exist_ok=True)
        (kit / name).write_bytes((made / "scaffolds/desk-kit" / name).read_bytes())
    env = {"PYTHONPATH": str(workspace / ".home/kit"), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(argv, check=False, env=env, capture_output=True, cwd=workspace, timeout=60)
    files = sorted((workspace / "output").glob("*")) if (workspace / "output").is_dir() else []
    return "\n".join(file.read_bytes().decode("utf-8", "replace") for file in files)


def test_works_say_as_much_as_they_are_good(made: Path, tmp_path: Path) -> None:
    for n, job in enumerate(make.read_jobs()):
        proofs = [rubric["proof"] for rubric in job["rubric"]]
        found = {v: solved(made, job, v, tmp_path / f"{n}-{v}") for v in make.VARIANTS}
        said = {variant: [proof in text for proof in proofs] for variant, text in found.items()}
        assert said["right"] == [True] * len(proofs)
        assert 0 < sum(said["partial"]) < len(proofs)
        for variant in ("wrong", "hostile", "broken", "nothing", "crash"):
            assert not any(said[variant]), (variant, job["place"])
        assert "rubric_passed true" in found["hostile"]
        given = job["instruction"] + job["card"] + json.dumps([r["criterion"] for r in job["rubric"]])
        assert not any(proof in given for proof in proofs), "a judge would find it in the question"


def test_the_judge_is_a_scenario(made: Path) -> None:
    (made / "models.toml").write_text(make.scenarios(made / "jobbench"))
    [judge] = load(made / "models.toml")
    assert judge.name == "jobbench-judge"
    assert len(judge.opinions) > 20
