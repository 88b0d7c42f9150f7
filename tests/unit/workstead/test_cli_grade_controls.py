import json
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server

TIME = "2026-11-01T12:00:00.000Z"


def operation(state: str = "succeeded") -> httpx.Response:
    body: dict[str, Any] = {
        "id": "op_1", "kind": "controls", "state": state, "done": 2, "total": 2, "unit": "controls", "log": [],
        "result": {}, "problem": None, "revision": 3, "created_at": TIME, "ended_at": None if state == "running" else TIME,
    }  # fmt: skip
    return httpx.Response(202, json=body)


def figures(done: bool = True, **excluded: int) -> httpx.Response:
    side = {"n": 4, "accepted": 3, "acceptance": 0.75, "mean_fraction": 0.8}
    altered = {"n": 4, "accepted": 1, "acceptance": 0.25, "mean_fraction": 0.3}
    kind = {
        "kind": "quarter", "controls": 4 + sum(excluded.values()), "outcomes": {"made": 4, "nothing_left": 2}, "pairs": 4,
        "excluded": excluded, "originals": side, "altered": altered,
        "difference": {"mean": -0.5, "interval": [-0.75, 0.0]},
    }  # fmt: skip
    body: dict[str, Any] = {
        "id": "op_1", "state": "succeeded", "done": done, "originals": 6, "plan": None, "seed": 0, "accepted_from": 1.0,
        "kinds": [kind],
    }  # fmt: skip
    return httpx.Response(200, json=body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def test_both_sides_are_shown_when_all_are_graded(server: Server) -> None:
    answers = [operation("running"), operation("running"), operation(), figures(done=False), figures()]
    done = server.run("grade", "controls", "--label", "week=48", "--seed", "7", answers=answers)
    assert done.exit_code == 0, done.output
    for text in ("3 of 4 (75%)", "1 of 4 (25%)", "-0.50", "-0.75 … +0.00", "none of 2 runs (nothing_left)"):
        assert text in done.output, done.output
    wish = json.loads(server.script.bodies[0])
    assert (wish["kinds"], wish["seed"], wish["filter"]) == (
        ["quarter", "other_task", "empty"],
        7,
        {"labels": {"week": "48"}},
    )
    assert server.asked[-1] == ("GET", "/v1/controls/op_1")


def test_a_side_without_a_score_is_told_by_the_exit_code(server: Server) -> None:
    done = server.run(
        "grade", "controls", "run_1", "run_2", "--json", answers=[operation(), operation(), figures(failed=1)]
    )
    assert done.exit_code == 3
    assert json.loads(done.stdout)["kinds"][0]["excluded"] == {"failed": 1}
    assert json.loads(server.script.bodies[0])["runs"] == ["run_1", "run_2"]


def test_a_weaker_agent_adds_its_kind_and_nothing_is_waited_for_when_detached(server: Server) -> None:
    answers = [operation(), operation(), figures(done=False, unfinished=4)]
    done = server.run("grade", "controls", "run_1", "--weaker", "small", "--detach", answers=answers)
    assert done.exit_code == 0, done.output
    wish = json.loads(server.script.bodies[0])
    assert (wish["kinds"][-1], wish["weaker"]) == ("weaker", "small")


def test_an_operation_that_fails_is_a_failure(server: Server) -> None:
    done = server.run("grade", "controls", "run_1", answers=[operation(), operation("failed")])
    assert done.exit_code == 1
    assert "op_1: failed" in done.output
