import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server

TIME = "2026-11-01T12:00:00.000Z"


def body(**changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "id": "fcs_1", "revision": 1, "name": "set", "state": "draft", "benchmark_id": "bench_1", "agent_id": None,
        "template": "forecast@1", "template_digest": "sha256:" + "0" * 64, "total": 6, "ok": 0, "excluded": 0,
        "failed": 0, "imported": 0, "operation_id": None, "stopped_because": None, "labels": {}, "author": "tok_1",
        "created_at": TIME, "started_at": None, "ended_at": None, "spec": {}, "tasks": 3, "usage": {},
        "estimate": {"forecasts": 6, "cost_usd": "0.012000"}, "cost_usd": None,
    }  # fmt: skip
    return plain | changes


def made(**changes: Any) -> httpx.Response:
    return httpx.Response(200, json=body(**changes))


def operation(state: str = "succeeded") -> httpx.Response:
    found: dict[str, Any] = {
        "id": "op_1", "kind": "forecasts", "state": state, "done": 6, "total": 6, "unit": "forecasts", "log": [],
        "result": {}, "problem": None, "revision": 3, "created_at": TIME, "ended_at": TIME,
    }  # fmt: skip
    return httpx.Response(200, json=found)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def test_a_set_is_drawn_up_asked_for_and_shown(server: Server) -> None:
    answers = [
        made(), made(state="running", operation_id="op_1"), operation(),
        made(state="done", ok=5, excluded=1, cost_usd="0.010000"),
    ]  # fmt: skip
    words = (
        "forecasts", "make", "set", "--benchmark", "pw", "--model", "acme/one:low", "--prompt", "limits+reason@tools",
        "--prompt", "drop_2", "--tasks", "3", "--agent", "solver", "--yes",
    )  # fmt: skip
    done = server.run(*words, answers=answers)
    assert done.exit_code == 0, done.output
    assert "5 ok (0 imported), 1 excluded, 0 failed" in done.output
    wish = json.loads(server.script.bodies[0])
    assert wish["forecasters"] == [{"model": "acme/one", "effort": "low"}]
    assert wish["prompts"] == [
        {"variant": "limits", "reason": True, "system": "tools"}, {"variant": "drop_2", "reason": False},
    ]  # fmt: skip
    assert (wish["tasks"]["limit"], wish["about"]["agent"]) == (3, "solver")
    assert [path for _, path in server.asked][1:] == [
        "/v1/forecast-sets/fcs_1/start", "/v1/operations/op_1", "/v1/forecast-sets/fcs_1",
    ]  # fmt: skip


def test_nobody_is_asked_before_a_yes(server: Server) -> None:
    words = ("forecasts", "make", "set", "--task", "task_1", "--model", "acme/one")
    done = server.run(*words, answers=[made()], stdin="n\n")
    assert done.exit_code == 1
    assert "about 0.012000 USD" in done.output
    assert server.asked == [("POST", "/v1/forecast-sets")]


def test_one_that_failed_says_where_to_look(server: Server) -> None:
    answers = [made(state="running", operation_id="op_1"), operation("failed")]
    done = server.run("forecasts", "start", "fcs_1", "--retry-failed", answers=answers)
    assert done.exit_code == 1
    assert "op_1: failed" in done.output
    assert json.loads(server.script.bodies[0]) == {"retry_failed": True}


def test_what_was_made_elsewhere_is_sent_line_by_line(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"task": "a", "forecaster": "f", "p_hat": 0.5}\n\n{"task": "b", "forecaster": "f", "p_hat": 1}\n')
    brought = httpx.Response(200, json={"new": 1, "known": 1})
    done = server.run("forecasts", "import", "fcs_1", str(file), answers=[brought])
    assert done.exit_code == 0, done.output
    assert "1 new, 1 known already" in done.output
    assert [one["task"] for one in json.loads(server.script.bodies[0])["forecasts"]] == ["a", "b"]
    file.write_text("[1]\n")
    done = server.run("forecasts", "import", "fcs_1", str(file), answers=[])
    assert done.exit_code == 1
    assert "line 1: not an object" in done.output


def test_rows_say_what_came_before_the_attempt(server: Server) -> None:
    row = {
        "id": "fc_1", "set_id": "fcs_1", "task_id": "task_1", "forecaster": "one#1", "prompt": "limits",
        "source": "asked", "state": "ok", "p_hat": 0.25, "asks": 1, "made_at": TIME, "made_before_attempt": True,
    }  # fmt: skip
    page = httpx.Response(200, json={"data": [row], "next": None})
    done = server.run("forecasts", "rows", "fcs_1", "--state", "ok", answers=[page])
    assert done.exit_code == 0, done.output
    assert "0.25" in done.output
    assert "yes" in done.output
    assert dict(server.script.requests[0].url.params)["state"] == "ok"
