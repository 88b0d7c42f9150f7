"""An evaluation from its file to its figures, by the command line alone, on real sandboxes with scripted models."""

import csv
import json
import os
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from service.models.scripted.scenario import Scenario
from tests.journeys.jobs import RIGHT, make_task, python_agent
from tests.journeys.models import Lab, LabModel, lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
WORKSTEAD = Path(sys.executable).with_name("workstead")
ANSWERS = Scenario(name="answers", answers=[f'<file name="answers.json">\n{json.dumps(RIGHT)}\n</file>'])
SOLVER = f"""
import json, pathlib
pathlib.Path("output").mkdir(exist_ok=True)
pathlib.Path("output/answers.json").write_text(json.dumps({RIGHT!r}))
"""
TASKS, SAMPLES = 3, 2


@pytest.fixture
def made() -> Iterator[Lab]:
    with lab() as running:
        running.provider.add(ANSWERS)
        yield running


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


def workstead(made: Lab, *words: str) -> Said:
    env = {**os.environ, "WORKSTEAD_URL": made.stack.url, "WORKSTEAD_TOKEN": made.stack.token}
    argv = [str(WORKSTEAD), *words]
    done = subprocess.run(
        argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400, check=False
    )
    return Said(done.returncode, done.stdout, done.stderr)


def answering_as(model: LabModel, scenario: str) -> None:
    """From now on the provider answers as the scenario says: what a person does who mends an entry of the catalogue."""
    key = f"sk-scripted-{scenario}.{uuid.uuid4().hex}"
    model.lab.stack.call("PUT", f"/v1/models/{model.id}/credential", json={"secret": key})


def write_spec(folder: Path, made: Lab, model: LabModel, **fields: Any) -> Path:
    body = {
        "name": f"week {uuid.uuid4().hex[:6]}",
        "task_ids": [make_task(made.stack) for _ in range(TASKS)],
        "agents": [
            {"agent": python_agent(made.stack, SOLVER)},
            {"scaffold": "single-response@latest", "model": model.name, "label": f"model {uuid.uuid4().hex[:6]}"},
        ],
        "samples": SAMPLES,
        **fields,
    }
    path = folder / "week.yaml"
    path.write_text(json.dumps(body))
    return path


def the_only(made: Lab) -> dict[str, Any]:
    (listed,) = made.stack.call("GET", "/v1/evaluations")["data"]
    return dict(made.stack.call("GET", f"/v1/evaluations/{listed['id']}"))


def test_a_wrong_model_is_found_before_anything_starts(made: Lab, tmp_path: Path) -> None:
    model = made.model("anthropic", "e404")
    said = workstead(made, "eval", "run", str(write_spec(tmp_path, made, model)), "--yes")
    assert said.code == 1, (said.out, said.err)
    assert "HTTP 404" in said.out
    draft = the_only(made)
    assert (draft["state"], draft["total"]) == ("draft", 0)
    assert [found["ok"] for found in draft["preflight"]["agents"].values()].count(False) == 1

    answering_as(model, "answers")
    said = workstead(made, "eval", "start", draft["id"], "--json")
    assert said.code == 0, (said.out, said.err)
    done = json.loads(said.out)
    assert (done["state"], done["total"], done["counts"]["outcome"]) == ("done", 12, {"graded": 12})
    assert done["preflight"]["ok"] is True
    table = tmp_path / "runs.csv"
    assert workstead(made, "eval", "tables", draft["id"], "runs", "-o", str(table)).code == 0
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12, "runs of preflights are in no table"
    assert {row["fraction"] for row in rows} == {"1.0"}
    shown = workstead(made, "eval", "matrix", draft["id"])
    assert shown.code == 0, shown.err
    assert "1.000 (2/2)" in shown.out
    report = workstead(made, "eval", "report", draft["id"], "--json")
    assert report.code == 0, report.err
    assert json.loads(report.out)["header"]["runs"] == 12
    assert workstead(made, "eval", "report", draft["id"], "--html", str(tmp_path / "report.html")).code == 0
    target = tmp_path / "handed-over.zip"
    exported = workstead(made, "eval", "export", draft["id"], "-o", str(target))
    assert exported.code == 0, (exported.out, exported.err)
    with zipfile.ZipFile(target) as archive:
        assert any(name.endswith("verify.py") for name in archive.namelist())


def test_an_agent_that_always_fails_is_held_and_finishes_once_it_is_mended(made: Lab, tmp_path: Path) -> None:
    model = made.model("anthropic", "e400")
    rules = {"stop_rules": {"first": 4, "first_bad": 2}, "concurrency": {"per_agent": 1}, "samples": 6}
    spec = write_spec(tmp_path, made, model, **rules)
    said = workstead(made, "eval", "run", str(spec), "--yes", "--skip-preflight")
    assert said.code == 4, (said.out, said.err)
    assert "stop_rule" in said.out
    held = the_only(made)
    assert held["resolved"]["preflight_skipped"] is True
    (hold,) = held["holds"]
    assert hold["reason"] == "stop_rule"
    assert hold["agent"].startswith("model ")

    answering_as(model, "answers")
    assert workstead(made, "eval", "release", held["id"], "--agent", hold["agent"]).code == 0
    said = workstead(made, "eval", "watch", held["id"])
    assert said.code == 0, (said.out, said.err)  # what failed was the agent's doing, and is graded as such
    failed = the_only(made)["counts"]["ended_because"]["scaffold_error"]
    assert failed >= 2

    said = workstead(made, "eval", "retry", held["id"], "--because", "scaffold_error", "--json")
    assert said.code == 0, (said.out, said.err)
    redone = json.loads(said.out)
    assert redone["counts"]["outcome"] == {"graded": 36, "invalidated": failed}
    log = workstead(made, "eval", "log", held["id"], "--json")
    actions = [json.loads(line)["action"] for line in log.out.splitlines()]
    assert [a for a in actions if a in ("draft", "start", "hold", "release", "retry")][:3] == ["draft", "start", "hold"]
    assert "release" in actions
