"""Tasks with hidden tests through the whole service: every kind of submission gets its verdict and its typed causes."""

import json
from typing import Any

import pytest

from tests.journeys.jobs import make_task, python_agent, submit, upload
from tests.journeys.stack import Stack, wait_until

TESTS = {
    "tests": [
        {"id": "small", "input": "3\n", "expected": "6\n"},
        {"id": "large", "input": "1000000\n", "expected": "2000000\n"},
        {"id": "says", "kind": "text", "expected": "doubled"},
        {"id": "means", "kind": "choice", "choices": ["half", "double"], "expected": "B"},
    ],
    "passing_score": 3,
}
ANSWERS = {"says": "doubled ", "means": "b"}
RIGHT = "print(2 * int(input()))"
SUBMISSIONS = {
    "right": (RIGHT, [None, None]),
    "wrong": ("print(int(input()) + 3)", [None, "wrong_answer"]),
    "crash": ("raise SystemExit(int(input()) % 3 or 1)", ["crash", "crash"]),
    "words": ("It doubles the number.", ["compile_error", "compile_error"]),
    "timeout": ("while True: pass", ["timeout", "timeout"]),
    "flood": ("while True: print('x' * 65536)", ["output_limit", "output_limit"]),
    "hostile": ("import os; print(2 * int(input()), flush=True); os.kill(-1, 9); input()", ["runner_killed", "runner_killed"]),
}  # fmt: skip


def code_task(stack: Stack, **settings: Any) -> str:
    hidden = [{"path": "tests.json", **upload(stack, json.dumps(TESTS).encode())}]
    grader = {"method": "test_cases", "settings": {"per_test_s": 2, "memory_bytes": 128 << 20, **settings}}
    return make_task(stack, hidden=hidden, graders=[grader])


def writer(stack: Stack, program: str | None) -> str:
    lines = ["import json, pathlib", "pathlib.Path('output').mkdir(exist_ok=True)"]
    if program is not None:
        lines.append(f"pathlib.Path('output/solution.py').write_text({program!r})")
    lines.append(f"pathlib.Path('output/answers.json').write_text(json.dumps({ANSWERS!r}))")
    return python_agent(stack, "\n".join(lines))


def verdict(stack: Stack, run_id: str) -> dict[str, Any]:
    run = stack.wait_run(run_id, 180)
    assert run["outcome"] == "graded", run
    (grading,) = stack.call("GET", f"/v1/runs/{run_id}/gradings")["data"]
    return grading


@pytest.mark.fault(80, 82)
def test_every_submission_gets_its_verdict_and_typed_causes(service: Stack) -> None:
    task = code_task(service)
    runs = {name: submit(service, task, writer(service, program)) for name, (program, _) in SUBMISSIONS.items()}
    runs["missing"] = submit(service, task, writer(service, None))
    expected = {name: causes for name, (_, causes) in SUBMISSIONS.items()} | {"missing": ["missing_deliverable"] * 2}
    gradings = {name: verdict(service, run_id) for name, run_id in runs.items()}
    for name, grading in gradings.items():
        causes = [*expected[name], None, None]
        assert [c["cause"] for c in grading["criteria"]] == causes, name
        passed = causes.count(None)
        assert (grading["score"], grading["max_score"]) == (passed, 4)
        facts = grading["detail"]
        assert (facts["solved"], facts["wrong"], facts["certified"]) == (passed == 4, 4 - passed, passed >= 3)
    page = service.call(
        "GET", f"/v1/gradings/{gradings['missing']['id']}/criteria", params={"cause": "missing_deliverable"}
    )
    assert [c["id"] for c in page["data"]] == ["small", "large"]
    wait_until("all rooms are gone", lambda: not service.leftovers().rooms(), 30)


@pytest.mark.slow
@pytest.mark.fault(125)
def test_a_killed_grader_leaves_one_verdict_and_no_room(service: Stack) -> None:
    slow = f"import time; time.sleep(1.5); {RIGHT}"
    run_id = submit(service, code_task(service, per_test_s=10), writer(service, slow))
    wait_until("a room is there", lambda: service.leftovers().rooms(), 60)
    rooms = set(service.leftovers().rooms())
    service.kill("grader")
    assert verdict(service, run_id)["score"] == 4
    assert len([e for e in service.events(run_id) if e["type"] == "verdict"]) == 1
    wait_until("what the killed grader left is removed", lambda: not rooms & set(service.leftovers().rooms()), 60)


@pytest.mark.fault(125)
def test_grading_again_is_another_round_and_the_same_verdict(service: Stack) -> None:
    run_id = submit(service, code_task(service), writer(service, RIGHT))
    first = verdict(service, run_id)
    service.call("POST", f"/v1/runs/{run_id}/gradings", json={})

    def both() -> list[dict[str, Any]] | None:
        found = service.call("GET", f"/v1/runs/{run_id}/gradings")["data"]
        return found if len(found) == 2 and all(g["state"] == "graded" for g in found) else None

    again = wait_until("the second round is graded", both, 120)
    assert [(g["round"], g["score"]) for g in again] == [(1, first["score"]), (2, first["score"])]
