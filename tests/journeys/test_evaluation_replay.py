"""An evaluation twice: once with a provider and a judge, once from what was recorded, with neither there. The same tables."""

import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from service.models.scripted.scenario import Scenario
from tests.fixtures.judge_server import JudgeServer, all_pass
from tests.journeys.jobs import make_task, python_agent, upload
from tests.journeys.models import Lab
from tests.journeys.stack import Stack, wait_until

pytestmark = [pytest.mark.timeout(600)]
WORKSTEAD = Path(sys.executable).with_name("workstead")
RUBRICS = [
    {"weight": 2, "rubric": f"Part {n} is there.", "criterion": [f"Part {n} is named.", "It is whole."]}
    for n in range(1, 4)
]
TASKS, SAMPLES, VOTES = 2, 2, 2
SAYS = Scenario(name="says", answers=['<file name="report.md">\nPart 1, part 2. No more.\n</file>'])
# A clock is in what it delivers: nothing of it is the same to the byte when it is done again.
CLOCK = """
import datetime, pathlib
pathlib.Path("output").mkdir(exist_ok=True)
now = datetime.datetime.now(datetime.timezone.utc).isoformat()
pathlib.Path("output/report.md").write_text(f"Made at {now}.\\nPart 1, part 3.\\n")
"""


class Judge:
    """Passes what is named in the work; its first word on each question of part 2 is prose."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __call__(self, body: dict[str, Any]) -> str:
        said = json.loads(all_pass(body))
        system, work = body["system"][0]["text"], json.dumps(body["messages"])
        part = re.search(r"Part (\d) is there", system)
        assert part is not None
        question = re.sub("[0-9a-f]{32}", "", system + work)
        if part[1] == "2" and question not in self.asked:
            self.asked.add(question)
            return "It looks fine to me."
        if f"art {part[1]}" not in work.replace("part", "Part").replace(f"Part {part[1]} is", ""):
            said["criteria_results"][0]["passed"] = said["rubric_passed"] = False
        return json.dumps(said)


def workstead(service: Stack, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "WORKSTEAD_URL": service.url, "WORKSTEAD_TOKEN": service.token}
    return subprocess.run(
        [WORKSTEAD, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False
    )


def judged_task(service: Stack, model: str) -> str:
    rubrics = upload(service, json.dumps({"rubrics": RUBRICS}).encode())
    settings = {"judges": [{"model": model}], "votes": VOTES}
    return make_task(
        service,
        hidden=[{"path": "RUBRICS.json", **rubrics}],
        graders=[{"method": "rubric_chain", "settings": settings}],
        instruction="Write output/report.md.",
    )


def evaluated(there: Lab, folder: Path) -> str:
    """Run the evaluation with everybody there; return its id. Provider and judge are gone then."""
    service, name = there.stack, f"replay/{uuid.uuid4().hex[:10]}"
    with JudgeServer(Judge()) as judge:
        service.call("POST", "/v1/models", json=judge.model(name))
        model = there.model("anthropic", SAYS, prices={"input_usd": "3", "output_usd": "15", "as_of": "2026-11-01"})
        spec = {
            "name": f"twice {uuid.uuid4().hex[:6]}",
            "task_ids": [judged_task(service, name) for _ in range(TASKS)],
            "agents": [
                {"agent": python_agent(service, CLOCK)},
                {"scaffold": "single-response@latest", "model": model.name, "label": f"model {uuid.uuid4().hex[:6]}"},
            ],
            "samples": SAMPLES,
            "seed": 11,
        }
        (folder / "twice.json").write_text(json.dumps(spec))
        said = workstead(service, "eval", "run", str(folder / "twice.json"), "--yes", "--skip-preflight", "--json")
        assert said.returncode == 0, (said.stdout, said.stderr)
    there.provider.stop()
    return str(json.loads(said.stdout)["id"])


def spent(service: Stack, evaluation: str) -> dict[str, str]:
    """Return what an evaluation that is done cost, which is summed soon after its end."""

    def summed() -> dict[str, str] | None:
        row = service.call("GET", f"/v1/evaluations/{evaluation}")
        spend = row["spend"]
        return spend if row["state"] == "done" and spend.get("at", "") >= row["updated_at"] else None

    spend = wait_until("its dollars are summed", summed)
    assert float(spend["judges_usd"]) > 0
    return {name: spend[name] for name in ("agents_usd", "judges_usd")}


def votes_of(service: Stack, evaluation: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return what was drawn and said by whose work, task, sample, item and number; with what was asked, to the byte, where no
    clock is in the work."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in service.call("GET", f"/v1/runs?evaluation_id={evaluation}&limit=500")["data"]:
        (grading,) = service.call("GET", f"/v1/runs/{run['id']}/gradings")["data"]
        place = (run["agent"]["label"], run["task"]["id"], run["sample"])
        assert len(grading["detail"]["order_seed"]) == 64
        found[(*place, "order")] = {"seed": grading["detail"]["order_seed"]}
        clock = not place[0].startswith("model ")
        names = ["judge", "state", "content", "asks", "usage", *([] if clock else ["rendered_sha256"])]
        for vote in service.call("GET", f"/v1/gradings/{grading['id']}/votes?limit=500")["data"]:
            found[(*place, vote["item"], vote["n"])] = {name: vote[name] for name in names}
    return found


def test_the_same_evaluation_twice_gives_the_same_tables(there: Lab, tmp_path: Path) -> None:
    service, first = there.stack, evaluated(there, tmp_path)
    said = workstead(service, "eval", "replay", first, "--json")
    assert said.returncode == 0, (said.stdout, said.stderr)
    again = json.loads(said.stdout)
    assert (again["state"], again["counts"]["outcome"]) == ("done", {"graded": 2 * TASKS * SAMPLES})
    assert "but for times" in said.stderr
    assert spent(service, again["id"]) == spent(service, first), "as it cost then"
    reports = [service.call("GET", f"/v1/evaluations/{one}/report") for one in (first, again["id"])]
    assert [one["header"]["seed"] for one in reports] == [11, 11]
    assert {t["settings"]["seed"] for r in reports for t in r["tables"] if "seed" in t["settings"]} == {11}, (
        "bootstraps"
    )
    replayed = {line["name"]: line["count"] for line in reports[1]["validity"]}["replayed"]
    assert replayed == 2 * TASKS * SAMPLES
    before, after = votes_of(service, first), votes_of(service, again["id"])
    assert len(before) == 2 * TASKS * SAMPLES * (1 + len(RUBRICS) * VOTES)
    assert {vote["asks"] for vote in before.values() if "asks" in vote} == {1, 2}, "some were asked for twice"
    assert after == before
    scores = {row["fraction"] for row in service.call("GET", f"/v1/evaluations/{first}/tables/runs.json")}
    assert scores == {4 / 6}, "there was something to judge"
