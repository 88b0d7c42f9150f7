"""A judge's outage in the middle of many gradings, and a kill -9 of the grader: all end graded, each vote once (fault 124).

The judge says of everything that it passes: a point that is missing afterwards was invented by us.
"""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fixtures.judge_server import JudgeServer
from tests.journeys.conftest import JUDGE_CALLS
from tests.journeys.jobs import upload
from tests.journeys.stack import Stack, wait_until

pytestmark = pytest.mark.timeout(900)
RUBRICS = 4
RUBRIC = {"weight": 2, "rubric": "The report is complete.", "criterion": ["It names a total.", "It names a source."]}


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer(latency_s=0.05) as server:
        yield server


@pytest.mark.fault(124, 111)
def test_sixty_gradings_outlive_an_outage_and_a_kill(service: Stack, judge: JudgeServer) -> None:
    outlive(service, judge, gradings=60, outage_s=4, status=429)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.fault(124, 111)
def test_five_hundred_gradings_outlive_an_outage_and_a_kill(service: Stack, judge: JudgeServer) -> None:
    outlive(service, judge, gradings=500, outage_s=20, status=503)


def outlive(service: Stack, judge: JudgeServer, *, gradings: int, outage_s: float, status: int) -> None:
    model = f"test/{uuid.uuid4().hex[:12]}"
    service.call("POST", "/v1/models", json={**judge.model(), "name": model})
    run_ids = [delivered(service, model) for _ in range(gradings // 10)]
    for run_id in run_ids:
        for number in range(2, 11):
            service.call("POST", f"/v1/runs/{run_id}/gradings", json={"round": number})
    wait_until("a third of the votes is there", lambda: judge.statuses[200] > gradings * RUBRICS // 3, 400)
    judge.fail = status
    before = judge.statuses[200]
    wait_until("the judge is asked in vain", lambda: judge.statuses[status] > 0, 60)
    time.sleep(outage_s / 2)  # an outage lasts; nothing is waited for
    service.kill("grader")
    time.sleep(outage_s / 2)
    judge.fail = None
    rows = wait_until("all are graded", lambda: ended(service, run_ids, gradings), 800, 0.5)
    assert {(row["state"], row["score"], row["max_score"]) for row in rows} == {
        ("graded", 2.0 * RUBRICS, 2.0 * RUBRICS)
    }
    votes = [vote for row in rows for vote in votes_of(service, row["id"])]
    assert len({(v["grading_id"], v["judge"], v["item"], v["n"]) for v in votes}) == len(votes) == gradings * RUBRICS
    assert {v["state"] for v in votes} == {"valid"}
    assert judge.statuses[200] - len(votes) <= 2 * JUDGE_CALLS, "only what was under way at the kill is asked again"
    assert before < len(votes), "the outage came in the middle"
    for run_id in run_ids:
        run = service.call("GET", f"/v1/runs/{run_id}")
        assert (run["outcome"], run["verdict"]["fraction"]) == ("graded", 1.0)


def delivered(service: Stack, model: str) -> str:
    """Upload what somebody delivered for a task; return the run that holds it."""
    rubrics = [RUBRIC] * RUBRICS
    manifest = {
        "name": f"journeys/judged-{uuid.uuid4().hex[:12]}",
        "instruction": "Write a report.",
        "hidden": [{"path": "RUBRICS.json", **upload(service, json.dumps({"rubrics": rubrics}).encode())}],
        "graders": [{"method": "rubric_chain", "settings": {"judges": [{"model": model}]}}],
    }
    task = service.call("POST", "/v1/tasks", json=manifest)["id"]
    report = upload(service, b"The total is 42, says the bank.\n")
    files = [{"path": "output/report.txt", "sha256": report["sha256"]}]
    return str(service.call("POST", "/v1/gradings", json={"task": task, "files": files})["id"])


def ended(service: Stack, run_ids: list[str], count: int) -> list[dict[str, Any]] | None:
    rows = [row for run_id in run_ids for row in service.call("GET", f"/v1/runs/{run_id}/gradings")["data"]]
    assert len(rows) == count
    over = all(row["state"] in ("graded", "failed", "abstained") for row in rows)
    return rows if over else None


def votes_of(service: Stack, grading_id: str) -> list[dict[str, Any]]:
    found = service.call("GET", f"/v1/gradings/{grading_id}/votes", params={"limit": 500})["data"]
    return [{**vote, "grading_id": grading_id} for vote in found]
