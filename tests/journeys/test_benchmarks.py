"""The synthetic sets through the whole service: one command imports each, one runs it, one says whether it is sound."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from demo.benchmarks.desk import make as desk
from demo.benchmarks.make import make
from tests.journeys.stack import Stack
from tests.unit.workstead.importers.harbor.test_importer import add as add_harbor
from workstead.sync import Client

SCAFFOLDS = Path(__file__).parents[2] / "demo/scaffolds"
WORKSTEAD = Path(sys.executable).with_name("workstead")
SMALL = ("-O", "memory_bytes=268435456", "-O", "disk_bytes=67108864", "-O", "cpus=1", "-O", "wall_clock_s=60")


@pytest.fixture(scope="module")
def stack(service: Stack) -> Stack:
    return service


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make(tmp_path_factory.mktemp("sets") / "sets")
    for job in desk.read_jobs():  # a slice is enough here; tests/journeys/test_desk.py runs them all
        shutil.rmtree(root / "jobbench" / job["place"])
    return root


@pytest.fixture(scope="module")
def imported(stack: Stack, sets: Path) -> dict[str, dict[str, Any]]:
    """Return what each import said, by the set's name."""
    free = sets / "freelance"
    said = {
        "a": bring(stack, "freelance", free / "shape_a.json", "set-a", "solutions", free / "solutions", "per_test_s=5"),
        "b": bring(stack, "freelance", free / "shape_b.json", "set-b", "disputed", free / "disputed.json"),
        # In an environment that is always built.
        "j": bring(
            stack,
            "jobbench",
            sets / "jobbench",
            "set-j",
            "categories",
            sets / "jobbench/categories.json",
            "environment=workbench",
        ),
    }
    return {name: json.loads(done.stdout) for name, done in said.items()}


def bring(stack: Stack, kind: str, source: Path, name: str, option: str, file: Path, *more: str) -> Any:
    options = [part for pair in (f"{option}={file}", *more) for part in ("-O", pair)]
    done = workstead(stack, "benchmarks", "import", kind, source, "--name", name, *SMALL, *options, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def workstead(stack: Stack, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "WORKSTEAD_URL": stack.url, "WORKSTEAD_TOKEN": stack.token, "COLUMNS": "200"}
    return subprocess.run(
        [WORKSTEAD, *arguments], env=env, capture_output=True, text=True, timeout=300, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_each_set_is_there_as_the_importer_saw_it(stack: Stack, imported: dict[str, dict[str, Any]]) -> None:
    counts = {
        name: {k: said["benchmark"]["counts"][k] for k in ("ok", "disputed", "quarantined")}
        for name, said in imported.items()
    }
    assert counts == {name: said["validation"]["counts"] for name, said in imported.items()}
    assert [counts[name]["quarantined"] for name in ("a", "b", "j")] == [1, 1, 1]
    shown = workstead(stack, "benchmarks", "list").stdout
    assert all(name in shown for name in ("set-a", "set-b", "set-j"))
    shown = workstead(stack, "benchmarks", "show", "set-b").stdout
    assert "gold_growth_differs" in shown
    assert "201" not in shown.split("what the check found")[1]


def test_importing_again_finds_it(stack: Stack, sets: Path, imported: dict[str, dict[str, Any]]) -> None:
    free = sets / "freelance"
    again = bring(stack, "freelance", free / "shape_b.json", "set-b", "disputed", free / "disputed.json")
    assert json.loads(again.stdout)["benchmark"]["id"] == imported["b"]["benchmark"]["id"]


@pytest.mark.parametrize(("name", "items"), [("set-a", 5), pytest.param("set-b", 5, marks=pytest.mark.slow)])
def test_check_says_which_items_are_sound(
    stack: Stack, imported: dict[str, dict[str, Any]], name: str, items: int
) -> None:
    done = workstead(stack, "benchmarks", "check", name, "--json")
    checks = {c["key"]: c for c in map(json.loads, done.stdout.splitlines())}
    assert len(checks) == items, done.stdout + done.stderr
    broken = {key for key, check in checks.items() if check["state"] == "broken"}
    # Two tests of 105 ask for different answers to the same input: no program can pass both.
    assert (broken, done.returncode) == (({"105"}, 1) if name == "set-a" else (set(), 0))
    assert {c["nop"] for c in checks.values()} == {"failed"}
    with Client(stack.url, stack.token) as client:
        benchmark = client.benchmarks.find(name)
        kept = {i.key: i.checked["state"] for i in client.benchmarks.items(benchmark.id) if i.checked is not None}
    assert kept == {key: check["state"] for key, check in checks.items()}


def test_check_opens_the_files_of_tasks_without_a_grader(stack: Stack, imported: dict[str, dict[str, Any]]) -> None:
    done = workstead(stack, "benchmarks", "check", "set-j", "--json")
    checks = {c["key"]: c for c in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0, done.stdout + done.stderr
    assert {c["oracle"] for c in checks.values()} == {"not_applicable"}
    assert [c["state"] for c in checks.values()] == ["ok"] * 3, checks
    assert all("inputs" in c["runs"] and len(c["reasons"]) == 1 for c in checks.values()), checks


def test_one_command_runs_a_set_and_prints_the_table(
    stack: Stack, sets: Path, imported: dict[str, dict[str, Any]]
) -> None:
    agents = [SCAFFOLDS / "oracle.toml", SCAFFOLDS / "nop.toml", sets / "scaffolds/freelance-right.json"]
    options = [part for path in agents for part in ("--scaffold", path)]
    done = workstead(stack, "run", "--benchmark", "set-b", *options, "--no-download")
    assert done.returncode == 0, done.stdout + done.stderr
    table = done.stdout.split("Verdicts")[1]
    rows = {line.split("│")[1].strip(): line for line in table.splitlines() if "@1" in line}
    assert "5/5" in rows["demo-oracle@1"]
    assert "0/5" in rows["demo-nop@1"]
    # Gold answers of 203 and 206 break their own rules, so nobody who follows the rules gets full marks there.
    assert "3/5" in rows["freelance-right@1"]


def test_what_nothing_grades_is_said_so(stack: Stack, imported: dict[str, dict[str, Any]]) -> None:
    done = workstead(stack, "run", "--benchmark", "set-j", "--scaffold", SCAFFOLDS / "nop.toml", "--no-download")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "3 ungraded" in done.stdout


@pytest.mark.slow
def test_programs_fail_each_in_its_own_way(stack: Stack, sets: Path, imported: dict[str, dict[str, Any]]) -> None:
    with Client(stack.url, stack.token) as client:
        benchmark = client.benchmarks.find("set-a")
        task = next(i.task for i in client.benchmarks.items(benchmark.id) if i.key == "103")
        assert task is not None
        runs: dict[str, str] = {}
        for variant in ("right", "wrong", "crash", "timeout", "flood", "hostile"):
            scaffold = client.scaffolds.register(sets / f"scaffolds/freelance-{variant}.json")
            runs[variant] = client.runs.create(task.id, client.agents.create(scaffold.ref).id).id
        causes: dict[str, set[Any]] = {}
        for variant, run_id in runs.items():
            run = client.runs.wait(run_id)
            assert run.outcome == "graded", (variant, run)
            assert run.verdict.passed is (variant == "right"), (variant, run)
            causes[variant] = {c.cause for g in client.runs.gradings(run_id) for c in g.criteria or []}
    assert causes["wrong"] == {"wrong_answer"}
    assert causes["crash"] == {"crash"}
    assert causes["timeout"] == {"timeout"}
    assert causes["flood"] <= {"output_limit", "timeout"}
    assert causes["hostile"] <= {"runner_killed", "crash", "wrong_answer", "processes_left"}


def test_a_task_directory_is_solved_by_its_own_program_and_judged_by_its_own_tests(
    stack: Stack, tmp_path: Path
) -> None:
    add_harbor(tmp_path / "set", "sum")
    add_harbor(
        tmp_path / "set",
        "unsolved",
        **{"solution/solve.sh": "mkdir -p /workspace/output && echo 4 > /workspace/output/sum.txt\n"},
    )
    add_harbor(tmp_path / "set", "installs", **{"tests/test.sh": "apt-get install -y python3\n"})
    options = [part for pair in (*SMALL[1::2], "environment=workbench", "network=none") for part in ("-O", pair)]
    done = workstead(stack, "benchmarks", "import", "harbor", tmp_path / "set", "--name", "set-h", *options, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout)["benchmark"]["counts"]
    assert (counts["ok"], counts["quarantined"]) == (2, 1)
    done = workstead(stack, "benchmarks", "check", "set-h", "--json")
    checks = {c["key"]: c for c in map(json.loads, done.stdout.splitlines())}
    assert {key: check["oracle"] for key, check in checks.items()} == {"sum": "passed", "unsolved": "failed"}, checks
    assert {check["nop"] for check in checks.values()} == {"failed"}, checks
