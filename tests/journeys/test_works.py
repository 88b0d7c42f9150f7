"""RLI and PayWorthy from their folders to verdicts, with real sandboxes and scripted judges, by the command line."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.benchmarks.works import make, opinions, payworthy, rli
from service.models.scripted.scenario import Scenario
from service.models.scripted.scenario_file import load
from tests.journeys.models import Lab, lab
from tests.journeys.stack import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
ROOT = Path(__file__).parents[2]
WORKSTEAD = Path(sys.executable).with_name("workstead")
SMALL = {"memory_bytes": 268435456, "disk_bytes": 67108864, "cpus": 1, "wall_clock_s": 60, "environment": "workbench"}
JOBS = payworthy.read_jobs(make.SETS / "payworthy/postings.toml")[:12]
DONE_S = 600


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("works")
    make.make_rli(root / "rli")
    make.make_payworthy(root / "payworthy")
    make.make_scaffolds(root / "scaffolds")
    make.make_models(root / "models.toml")
    kept = {job.item_id for job in JOBS}
    for folder in (root / "payworthy").iterdir():
        if folder.name not in kept:
            shutil.rmtree(folder)
    return root


@pytest.fixture(scope="module")
def running(sets: Path) -> Iterator[Lab]:
    with lab() as there:
        yield there


@pytest.fixture(scope="module")
def scenarios(sets: Path) -> dict[str, Scenario]:
    return {scenario.name: scenario for scenario in load(sets / "models.toml")}


def workstead(there: Lab, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "WORKSTEAD_URL": there.stack.url, "WORKSTEAD_TOKEN": there.stack.token, "COLUMNS": "200"}
    return subprocess.run(
        [WORKSTEAD, *arguments], env=env, capture_output=True, text=True, timeout=DONE_S, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def bring(there: Lab, kind: str, source: Path, *more: str, **options: Any) -> dict[str, Any]:
    pairs = [part for name, value in {**SMALL, **options}.items() for part in ("-O", f"{name}={value}")]
    done = workstead(there, "benchmarks", "import", kind, source, *pairs, *more, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def runs_of(there: Lab, **filters: str) -> list[dict[str, Any]]:
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    return there.stack.call("GET", f"/v1/runs?limit=500&{query}")["data"]


def test_works_that_came_with_the_postings_are_judged(running: Lab, sets: Path, scenarios: dict[str, Scenario]) -> None:
    judges = [running.model("anthropic", scenarios[f"payworthy-{kind}"]).name for kind in ("judge", "strict")]
    said = bring(running, "payworthy", sets / "payworthy", "--deliverables", "upload", judge=",".join(judges))
    assert said["validation"]["counts"] == {"ok": 12, "disputed": 0, "quarantined": 0}

    def graded() -> list[dict[str, Any]] | None:
        found = runs_of(running, **{"label.imported": "work"})
        return found if len(found) == 12 and all(run["phase"] == "done" for run in found) else None

    runs = wait_until("all works are judged", graded, DONE_S, 1.0)
    texts = {job.item_id: job for job in JOBS}
    for run in runs:
        job = texts[run["task"]["name"].removeprefix("payworthy/")]
        good = job.mark.encode() in b"".join(payworthy.solved(job).values()) or "work.xlsx" in payworthy.solved(job)
        ways = {opinions.accepted(job, strict=strict) and good for strict in (True, False)}
        scores = {run["verdict"]["score"]} if run["outcome"] == "graded" else {None}
        # Two judges of two minds are a tie, which is no score.
        assert scores == ({float(next(iter(ways)))} if len(ways) == 1 else {None}), (job.title, run)
    again = bring(running, "payworthy", sets / "payworthy", "--deliverables", "upload", judge=",".join(judges))
    assert again["benchmark"]["id"] == said["benchmark"]["id"]
    assert len(runs_of(running, **{"label.imported": "work"})) == 12


def test_projects_are_run_and_compared_with_what_the_professional_delivered(
    running: Lab, sets: Path, scenarios: dict[str, Scenario]
) -> None:
    judge = running.model("anthropic", scenarios["rli-judge"]).name
    bring(running, "rli", sets / "rli", judge=judge, people="no")
    agents = [
        ROOT / "demo/scaffolds/oracle.toml",
        *(sets / f"scaffolds/works-{v}.json" for v in ("right", "partial", "wrong")),
    ]
    options = [part for path in agents for part in ("--scaffold", path)]
    done = workstead(running, "run", "--benchmark", "rli", *options, "--no-download", "--json")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    runs = [run for run in runs_of(running) if run["task"]["name"].startswith("rli/")]
    found: dict[str, set[Any]] = {}
    for run in runs:
        assert run["outcome"] == "graded", run
        found.setdefault(run["agent"]["label"].split("@")[0], set()).add(run["verdict"]["score"])
    # What is partly there is as good as the reference only where its first file is what the brief is about.
    wanted = {"demo-oracle": {0.5}, "works-right": {0.5}, "works-partial": {0.0, 0.5}, "works-wrong": {0.0}}
    assert found == wanted
    partial = {r["task"]["name"]: r["verdict"]["score"] for r in runs if r["agent"]["label"] == "works-partial@1"}
    assert partial == {f"rli/{project}": 0.0 if project in rli.MARKS else 0.5 for project in rli.WORKS}


def test_a_check_opens_what_people_will_grade(running: Lab, sets: Path) -> None:
    bring(running, "rli", sets / "rli", "--name", "rli-people")
    done = workstead(running, "benchmarks", "check", "rli-people", "--json")
    checks = {c["key"]: c for c in map(json.loads, done.stdout.splitlines())}
    assert len(checks) == 6, done.stdout + done.stderr
    states = {key: check["state"] for key, check in checks.items()}
    # One project comes with a workbook that nobody can open, as its brief says.
    assert states == {**dict.fromkeys(checks, "ok"), "public_904": "suspect"}, checks
