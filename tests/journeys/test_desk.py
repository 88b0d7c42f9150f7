"""JobBench from its folder to scores, with real sandboxes and a scripted judge, by the command line."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.benchmarks.desk import make
from demo.benchmarks.make import make_jobbench
from service.models.scripted.scenario_file import load
from tests.journeys.models import Lab, lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
WORKSTEAD = Path(sys.executable).with_name("workstead")
SMALL = {"memory_bytes": 268435456, "disk_bytes": 67108864, "cpus": 1, "wall_clock_s": 60, "environment": "workbench"}


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("desk")
    make_jobbench(root / "jobbench")
    make.make_scaffolds(root / "scaffolds")
    (root / "models.toml").write_text(make.scenarios(root / "jobbench"))
    return root


@pytest.fixture(scope="module")
def running() -> Iterator[Lab]:
    with lab() as there:
        yield there


def workstead(there: Lab, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "WORKSTEAD_URL": there.stack.url, "WORKSTEAD_TOKEN": there.stack.token, "COLUMNS": "200"}
    return subprocess.run(
        [WORKSTEAD, *arguments], env=env, capture_output=True, text=True, timeout=900, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_scores_say_how_good_the_work_is(running: Lab, sets: Path) -> None:
    judge = running.model("anthropic", load(sets / "models.toml")[0]).name
    options = {**SMALL, "judge": judge, "network": "none", "categories": sets / "jobbench/categories.json"}
    pairs = [part for name, value in options.items() for part in ("-O", f"{name}={value}")]
    done = workstead(running, "benchmarks", "import", "jobbench", sets / "jobbench", *pairs, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    card = json.loads(workstead(running, "benchmarks", "card", "jobbench", "--json").stdout)
    assert card["counts"]["ok"] == 8
    assert {found["suffix"] for found in card["formats"]} >= {"xlsx", "docx", "pdf", "csv", "sqlite", "png"}
    agents = [sets / f"scaffolds/desk-{variant}.json" for variant in ("right", "partial", "wrong", "hostile")]
    chosen = [part for path in agents for part in ("--scaffold", path)]
    done = workstead(running, "run", "--benchmark", "jobbench", *chosen, "--no-download", "--json")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    known = {
        f"jobbench/{job['place'].replace('dataset_easy', 'easy').replace('dataset', 'main')}"
        for job in make.read_jobs()
    }
    scores: dict[str, list[Any]] = {}
    for run in running.stack.call("GET", "/v1/runs?limit=500")["data"]:
        if run["task"]["name"] in known:
            assert run["outcome"] == "graded", run
            verdict = run["verdict"]
            scores.setdefault(run["agent"]["label"].split("@")[0], []).append(verdict["score"] / verdict["max_score"])
    assert {name: len(found) for name, found in scores.items()} == dict.fromkeys(scores, 5)
    assert set(scores["desk-right"]) == {1.0}
    assert all(0 < score < 1 for score in scores["desk-partial"])
    assert set(scores["desk-wrong"]) == set(scores["desk-hostile"]) == {0.0}
