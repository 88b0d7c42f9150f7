"""Commands on what a task's simulated client knows."""

import json
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server

OPERATION = {"id": "op_1", "kind": "client_facts", "state": "queued", "unit": "sheets"}
ENDED = OPERATION | {"ended_at": "2026-01-05T09:00:00Z"}
DONE = ENDED | {"state": "succeeded", "result": {"model": "acme/client", "created": True}}
FACTS: dict[str, Any] = {
    "task_id": "task_1", "source": "generated", "path": "client-facts.md", "sha256": "sha256:x", "size_bytes": 9,
    "text": "- 1987\x1b[2J", "model": "acme/client", "seed": 1, "template": "client_facts@1", "author": "tok_1",
}  # fmt: skip


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def test_they_are_made_and_waited_for(server: Server) -> None:
    answers = [httpx.Response(202, json=OPERATION), httpx.Response(200, json=DONE)]
    result = server.run("tasks", "facts", "make", "task_1", "--model", "acme/client", "--seed", "7", answers=answers)
    assert result.exit_code == 0, result.output
    assert "facts made by acme/client" in result.stdout
    assert server.asked[0] == ("POST", "/v1/tasks/task_1/client-facts")
    assert json.loads(server.script.bodies[0]) == {"model": "acme/client", "seed": 7}


def test_a_failure_is_said(server: Server) -> None:
    failed = ENDED | {"state": "failed", "problem": {"type": "facts_not_made", "detail": "no sheet"}}
    answers = [httpx.Response(202, json=OPERATION), httpx.Response(200, json=failed)]
    result = server.run("tasks", "facts", "make", "task_1", answers=answers)
    assert result.exit_code == 1
    assert "facts_not_made: no sheet" in result.stdout


def test_they_are_shown_without_steering_the_terminal(server: Server) -> None:
    result = server.run("tasks", "facts", "show", "task_1", answers=[httpx.Response(200, json=FACTS)])
    assert result.exit_code == 0
    assert "- 1987" in result.stdout
    assert "\x1b" not in result.stdout
    assert "tok_1" in result.stdout
    as_json = server.run("tasks", "facts", "show", "task_1", "--json", answers=[httpx.Response(200, json=FACTS)])
    assert json.loads(as_json.stdout)["text"] == FACTS["text"]
