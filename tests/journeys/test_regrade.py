"""Another judge for what was judged: the command line asks for an estimate, a sample and the rest, and the ledger agrees."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.judge_server import JudgeServer, all_pass
from tests.journeys.jobs import upload
from tests.journeys.stack import Stack, stack, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WORKSTEAD = Path(sys.executable).with_name("workstead")
RUNS = 8
RUBRICS = [{"weight": 1, "rubric": f"Part {n}.", "criterion": ["It is there."]} for n in range(3)]
STRICT = "judge-2"


def judge(body: dict[str, Any]) -> str:
    said = json.loads(all_pass(body))
    if body["model"] == STRICT and "report 3" in json.dumps(body["messages"]):
        said["criteria_results"][0]["passed"] = said["rubric_passed"] = False
    return json.dumps(said)


@pytest.fixture
def service() -> Iterator[Stack]:
    with JudgeServer(judge) as server, stack(WORKSTEAD_MODELS__ALLOW_PRIVATE="true") as running:
        server.tokens = lambda body, text: (len(json.dumps(body["messages"])) // 4, len(text) // 4)
        for name, upstream in (("test/judge", "judge-1"), ("test/strict", STRICT)):
            running.call("POST", "/v1/models", json=server.model(name, upstream_id=upstream))
        yield running


def test_the_judge_is_swapped(service: Stack, tmp_path: Path) -> None:
    run_ids = [delivered(service, n) for n in range(RUNS)]
    wait_until("all are graded", lambda: all(verdict(service, run_id)["score"] == 3 for run_id in run_ids), 240)
    evidence = [made(service, run_id) for run_id in run_ids]
    plan = {"graders": [{"method": "rubric_chain", "settings": {"judges": [{"model": "test/strict"}]}}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    workstead(service, "plans", "put", "strict", str(tmp_path / "plan.json"))
    words = ("--sample", "4", "--stratify", "agent", "--primary", "--yes", "--json")
    said = workstead(service, "regrade", "--plan", "strict", "--filter", "flag=external", *words)
    draft, sampled, done = map(json.loads, said.splitlines())
    assert [one["state"] for one in (draft, sampled, done)] == ["draft", "sampled", "done"]
    estimate, compared = draft["estimate"], done["comparison"]
    assert (estimate["judge_calls"], estimate["evidence"]["to_extract"]) == (RUNS * 3, 0)
    assert (sampled["comparison"]["n"], compared["n"], compared["flips_down"]["run_ids"]) == (4, RUNS, [run_ids[3]])
    assert (compared["cost"]["requests"], compared["cost"]["unknown"]) == (RUNS * 3, 0)
    spent, expected = float(compared["cost"]["usd"]), float(estimate["cost_usd"]["p50"])
    assert abs(spent - expected) / spent < 0.2, (spent, expected)
    after = [verdict(service, run_id) for run_id in run_ids]
    assert [v["score"] for v in after] == [0 if n == 3 else 3 for n in range(RUNS)]
    assert {v["plan"] for v in after} == {"strict@1"}
    assert [made(service, run_id) for run_id in run_ids] == evidence, "nothing was extracted again"
    target = tmp_path / "votes.csv"
    workstead(service, "grade", "export", str(target), "--table", "votes", "--filter", "plan=strict@1")
    assert len(target.read_text().splitlines()) == 1 + RUNS * 3


def delivered(service: Stack, number: int) -> str:
    hidden = [{"path": "RUBRICS.json", **upload(service, json.dumps({"rubrics": RUBRICS}).encode())}]
    graders = [{"method": "rubric_chain", "settings": {"judges": [{"model": "test/judge"}]}}]
    manifest = {"name": "journeys/regraded", "instruction": "Write a report.", "hidden": hidden, "graders": graders}
    task = service.call("POST", "/v1/tasks", json=manifest)["id"]
    report = upload(service, f"This is report {number}. ".encode() * (number + 1))
    files = [{"path": "output/report.txt", "sha256": report["sha256"]}]
    return str(service.call("POST", "/v1/gradings", json={"task": task, "files": files})["id"])


def verdict(service: Stack, run_id: str) -> dict[str, Any]:
    return service.call("GET", f"/v1/runs/{run_id}")["verdict"]


def made(service: Stack, run_id: str) -> Any:
    return service.call("GET", f"/v1/runs/{run_id}/evidence")["made_at"]


def workstead(service: Stack, *words: str) -> str:
    environment = {**os.environ, "WORKSTEAD_URL": service.url, "WORKSTEAD_TOKEN": service.token, "COLUMNS": "200"}
    done = subprocess.run(
        [WORKSTEAD, *words], env=environment, capture_output=True, text=True, timeout=300, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
