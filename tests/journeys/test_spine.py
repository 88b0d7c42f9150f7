"""The main job: submit → queue → provision → drive → stream → collect → grade, as a client sees it."""

import json
from typing import Any

import pytest

from tests.journeys.jobs import RIGHT, make_agent, make_task, python_agent, record, submit
from tests.journeys.stack import Stack, wait_until

SOLVER = """
import json, pathlib
numbers = [int(line) for line in pathlib.Path("data/numbers.txt").read_text().split()]
print("sum", sum(numbers), flush=True)
pathlib.Path("output/answers.json").write_text(json.dumps({"total": sum(numbers), "name": "Ada"}))
"""


def _builtin(service: Stack, kind: str) -> str:
    manifest = {"name": kind, "version": "1", "kind": kind}
    service.call("POST", "/v1/scaffolds", json=manifest)
    return str(service.call("POST", "/v1/agents", json={"scaffold": f"{kind}@1"})["id"])


def _verdict(run: dict[str, Any]) -> tuple[str, float, float]:
    return run["outcome"], run["verdict"]["score"], run["verdict"]["max_score"]


def test_a_program_reads_its_files_and_is_graded_by_what_it_delivered(service: Stack) -> None:
    task = make_task(service, {"data/numbers.txt": b"20 22"})
    seen = record(service, submit(service, task, python_agent(service, SOLVER)))

    assert _verdict(seen.run) == ("graded", 2, 2)
    assert seen.run["ended_because"] == "completed"
    assert seen.output(1) == "sum 42\n"
    assert [e["payload"]["phase"] for e in seen.of("run.phase")] == [
        "queued", "provisioning", "running", "collecting", "grading", "done",
    ]  # fmt: skip
    answer = service.http.get(f"/v1/runs/{seen.run['id']}/artifacts/output/answers.json")
    assert json.loads(answer.content) == RIGHT
    log = service.http.get(f"/v1/runs/{seen.run['id']}/attempts/1/logs/stdout")
    assert log.content == b"sum 42\n"


def test_oracle_passes_and_nop_does_not(service: Stack) -> None:
    task = make_task(service)
    oracle = record(service, submit(service, task, _builtin(service, "oracle")))
    nop = record(service, submit(service, task, _builtin(service, "nop")))

    assert _verdict(oracle.run) == ("graded", 2, 2)
    assert _verdict(nop.run) == ("graded", 0, 2)
    assert "no_deliverable" in nop.run["flags"]


def test_a_failing_program_is_the_agents_and_what_it_delivered_is_graded(service: Stack) -> None:
    program = SOLVER + "\nraise SystemExit(3)"
    task = make_task(service, {"data/numbers.txt": b"42"})
    seen = record(service, submit(service, task, python_agent(service, program)))

    assert seen.run["ended_because"] == "scaffold_error"
    assert _verdict(seen.run) == ("graded", 2, 2)


def test_the_wall_clock_ends_a_run_and_what_is_there_is_graded(service: Stack) -> None:
    task = make_task(service, {"data/numbers.txt": b"42"}, limits={"wall_clock_s": 2})
    seen = record(service, submit(service, task, python_agent(service, SOLVER + "\nimport time\ntime.sleep(600)")))

    assert seen.run["ended_because"] == "wall_clock"
    assert _verdict(seen.run) == ("graded", 2, 2)
    assert 1.9 <= seen.run["wall_s"] <= 6


def test_regrading_is_a_new_round_and_needs_no_rerun(service: Stack) -> None:
    task = make_task(service, {"data/numbers.txt": b"42"})
    run = record(service, submit(service, task, python_agent(service, SOLVER))).run
    service.call("POST", f"/v1/runs/{run['id']}/gradings", json={})

    def both() -> list[dict[str, Any]] | None:
        found = service.call("GET", f"/v1/runs/{run['id']}/gradings")["data"]
        return found if len(found) == 2 and all(g["state"] == "graded" for g in found) else None

    rounds = wait_until("two graded rounds", both, 30)
    assert sorted(g["round"] for g in rounds) == [1, 2]
    assert {g["score"] for g in rounds} == {2}
    assert service.call("GET", f"/v1/runs/{run['id']}")["attempt"] == 1


@pytest.mark.parametrize(("mode", "cause", "outcome"), [
    ("collect", "stopped", "graded"), ("discard", "cancelled", "cancelled"),
])  # fmt: skip
def test_stopping_a_working_agent(service: Stack, mode: str, cause: str, outcome: str) -> None:
    task = make_task(service, {"data/numbers.txt": b"42"})
    run = submit(service, task, python_agent(service, SOLVER + "\nimport time\ntime.sleep(600)"))
    wait_until("it has delivered", lambda: any(e["type"] == "output" for e in service.events(run)), 60)
    service.call("POST", f"/v1/runs/{run}/stop", json={"mode": mode})
    seen = record(service, run)

    assert (seen.run["ended_because"], seen.run["outcome"]) == (cause, outcome)
    assert (seen.run["verdict"]["score"] is None) == (outcome == "cancelled")


def test_finish_gives_the_agent_its_grace_and_then_ends_it(service: Stack) -> None:
    task = make_task(service, {"data/numbers.txt": b"42"}, limits={"grace_s": 1})
    run = submit(service, task, python_agent(service, SOLVER + "\nimport time\ntime.sleep(600)"))
    wait_until("it has delivered", lambda: any(e["type"] == "output" for e in service.events(run)), 60)
    service.call("POST", f"/v1/runs/{run}/stop", json={"mode": "finish"})
    seen = record(service, run)

    assert seen.run["ended_because"] == "wall_clock"
    assert _verdict(seen.run) == ("graded", 2, 2)


def test_a_task_without_graders_ends_ungraded_not_zero(service: Stack) -> None:
    task = make_task(service, {"data/numbers.txt": b"42"}, graders=[])
    run = record(service, submit(service, task, python_agent(service, SOLVER))).run
    assert (run["outcome"], run["verdict"]["score"]) == ("ungraded", None)


def test_a_missing_program_is_a_scaffold_error(service: Stack) -> None:
    seen = record(service, submit(service, make_task(service), make_agent(service, ["/no/such/program"])))
    assert seen.run["ended_because"] == "scaffold_error"
    assert "/no/such/program" in seen.output(1, "stderr")


def test_an_unknown_environment_ends_ungraded_with_a_reason(service: Stack) -> None:
    task = make_task(service, environment="no-such-image")
    body = {"task": task, "agent": make_agent(service, ["/bin/true"])}
    run = service.call("POST", "/v1/runs", json=body)
    hold = wait_until("a reason", lambda: service.call("GET", f"/v1/runs/{run['id']}")["hold"], 60)
    assert "no-such-image" in json.dumps(hold)
    service.call("POST", f"/v1/runs/{run['id']}/stop", json={"mode": "discard"})
    assert record(service, run["id"]).run["outcome"] == "cancelled"


def test_nothing_is_left_after_runs() -> None:
    with Stack({"WORKSTEAD_WORKER__WARM_TOTAL": "0"}) as running:
        task = make_task(running, {"data/numbers.txt": b"42"})
        agent = python_agent(running, SOLVER)
        for run in [submit(running, task, agent) for _ in range(6)]:
            record(running, run)
        assert not running.leftovers().containers()
        assert not running.leftovers().sandbox_dirs()
        running.stop()
        assert not running.leftovers().all()
