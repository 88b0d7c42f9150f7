"""A loop written from the documentation drives a real sandbox; its worker may be killed meanwhile."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.journeys import jobs
from tests.journeys.readme import ROOT
from tests.journeys.stack import Stack, wait_until
from workstead.errors import Problem
from workstead.websocket import BINARY, CLOSE, WebSocket


def documented_loop(fence: str) -> str:
    text = (ROOT / "docs" / "remote-driving.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```python {fence}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(block)


@pytest.fixture(name="run")
def remote_run(service: Stack) -> Iterator[str]:
    """A run that waits for its driver."""
    name = "by-hand"
    service.call("POST", "/v1/scaffolds", json={"name": name, "version": "1", "kind": "remote"})
    agent = service.call("POST", "/v1/agents", json={"scaffold": f"{name}@1"})["id"]
    run_id = jobs.submit(service, jobs.make_task(service), agent)
    wait_until("the run is ready", lambda: any(e["type"] == "run.ready" for e in service.events(run_id)))
    yield run_id
    service.call("POST", f"/v1/runs/{run_id}/stop", json={"mode": "discard"})


def claim(service: Stack, run_id: str) -> dict[str, str]:
    lease = service.call("POST", f"/v1/runs/{run_id}/claim", json={"holder": "a test"})
    return {"Workstead-Lease": lease["lease"]}


@pytest.mark.parametrize("fence", ["run", pytest.param("screen", marks=pytest.mark.slow)])
def test_the_documented_loop_is_graded(service: Stack, fence: str) -> None:
    task = jobs.make_task(service, {"input.csv": b"40\n2\n"})
    env = {**os.environ, "WORKSTEAD_URL": service.url, "WORKSTEAD_TOKEN": service.token, "WORKSTEAD_TASK": task}
    argv = [sys.executable, "-c", documented_loop(fence)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "graded 1.0\n"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_batch_that_kill_9_of_the_worker_broke_is_not_done_again(service: Stack) -> None:
    service.call("POST", "/v1/scaffolds", json={"name": "eyes", "version": "1", "kind": "remote", "surface": "desktop"})
    agent = service.call("POST", "/v1/agents", json={"scaffold": "eyes@1"})["id"]
    run = jobs.submit(service, jobs.make_task(service), agent)
    wait_until("the run is ready", lambda: any(e["type"] == "run.ready" for e in service.events(run)), 120)
    headers, path = claim(service, run), f"/v1/runs/{run}/desktop/actions"
    terminal = {"actions": [{"type": "click", "x": 210, "y": 780}], "settle": {"quiet_s": 2.0, "cap_s": 20}}
    assert service.call("POST", path, json=terminal, headers=headers, timeout=100)["state"]["title"] == "LXTerminal"
    line = {"type": "type", "text": "echo run >> /workspace/runs"}
    actions = [line, {"type": "key", "keys": ["Return"]}, {"type": "wait", "seconds": 60}]
    answers: list[Any] = []

    def act() -> None:
        body = {"actions": actions, "call_id": "broken"}
        answers.append(service.http.post(path, json=body, headers=headers, timeout=200))

    acting = threading.Thread(target=act)
    acting.start()
    wait_until("the batch is under way", lambda: _exists(service, run, headers, "runs"))
    service.kill("worker")
    acting.join(200)
    assert answers[0].status_code == 200, answers[0].text
    acted = answers[0].json()
    assert (acted["error"], acted["results"], acted["state"]["title"]) == ("interrupted", [], "LXTerminal")
    again = service.call("POST", path, json={"actions": actions, "call_id": "broken"}, headers=headers, timeout=100)
    assert again == acted
    assert service.http.get(f"/v1/runs/{run}/files/runs", headers=headers).text == "run\n"
    service.call("POST", f"/v1/runs/{run}/finish", json={"status": "success"}, headers=headers)
    assert jobs.record(service, run).run["ended_because"] == "completed"
    steps = service.call("GET", f"/v1/runs/{run}/trajectory")["steps"]
    contents = [r["content"] for step in steps for r in step.get("observation", {}).get("results", [])]
    paths: list[str] = [
        part["source"]["path"] for parts in contents for part in parts if isinstance(part, dict) and "source" in part
    ]
    assert acted["screenshot"]["href"] in paths
    assert service.http.get(paths[0]).headers["content-type"] == "image/png"


def test_a_call_outlives_kill_9_of_the_worker(service: Stack, run: str) -> None:
    headers = claim(service, run)
    script = "echo run >> runs; while [ ! -e go ]; do sleep 0.1; done; wc -l < runs"
    answers: list[Any] = []
    body = {"argv": ["bash", "-c", script], "call_id": "slow", "timeout_s": 100}

    def execute() -> None:
        answers.append(service.http.post(f"/v1/runs/{run}/exec", json=body, headers=headers, timeout=150))

    waiting = threading.Thread(target=execute)
    waiting.start()
    wait_until("the program runs", lambda: _exists(service, run, headers, "runs"))
    service.kill("worker")
    service.call("PUT", f"/v1/runs/{run}/files/go", content=b"", headers=headers, timeout=100)
    waiting.join(100)
    assert answers[0].status_code == 200, answers[0].text
    assert (answers[0].json()["code"], answers[0].json()["stdout"].strip()) == (0, "1")
    service.call("POST", f"/v1/runs/{run}/finish", json={"status": "failure"}, headers=headers)
    record = jobs.record(service, run)
    assert record.run["ended_because"] == "scaffold_error"
    calls = [e["payload"]["id"] for e in record.of("tool.call") if e["payload"]["name"] == "exec"]
    assert calls == ["slow"]
    assert [e["payload"]["action"] for e in record.of("driver")] == ["claimed", "finished"]


def test_output_is_streamed_from_a_real_sandbox_and_a_stop_ends_it(service: Stack, run: str) -> None:
    headers = {**claim(service, run), "Accept": "text/event-stream"}
    body = {"argv": ["bash", "-c", "echo one; sleep 100"], "timeout_s": 100}
    with service.http.stream("POST", f"/v1/runs/{run}/exec", json=body, headers=headers, timeout=60) as answer:
        lines = answer.iter_lines()
        assert (
            next(line for line in lines if line.startswith("data:")) == 'data: {"stream": "stdout", "text": "one\\n"}'
        )
        service.call("POST", f"/v1/runs/{run}/stop", json={"mode": "collect"})
        rest = list(lines)
    assert "event: error" in rest
    assert jobs.record(service, run).run["ended_because"] == "stopped"


def _exists(service: Stack, run_id: str, headers: dict[str, str], path: str) -> bool:
    return service.http.get(f"/v1/runs/{run_id}/files/{path}", headers=headers).status_code == 200


def test_a_shell_in_the_live_sandbox_marks_the_run_assisted(service: Stack, run: str) -> None:
    env = {**os.environ, "WORKSTEAD_URL": service.url, "WORKSTEAD_TOKEN": service.token}
    argv = [sys.executable, "-c", "from workstead.cli.app import main; main()", "runs", "shell", run]
    typed = "stty -echo; pwd; echo done-$((6*7)); exit 9\n"
    done = subprocess.run(argv, env=env, input=typed, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 9, done.stdout + done.stderr
    assert "/workspace" in done.stdout
    assert "done-42" in done.stdout
    assert "assisted" in service.call("GET", f"/v1/runs/{run}")["flags"]
    notes = [e["payload"]["text"] for e in service.events(run) if e["type"] == "note"]
    assert notes == ["a shell was opened", "a shell was closed"]


def test_a_shell_opens_for_who_may_debug_only(service: Stack, run: str) -> None:
    path = f"/v1/runs/{run}/shell"
    weak = service.call("POST", "/v1/tokens", json={"scopes": ["runs:read", "runs:drive"]})["secret"]
    strong = service.call("POST", "/v1/tokens", json={"scopes": ["runs:debug"]})["secret"]
    with pytest.raises(Problem) as refused:
        WebSocket.open(f"{service.url}{path}", {"Authorization": f"Bearer {weak}"})
    assert (refused.value.status, refused.value.type) == (403, "scope_missing")
    with pytest.raises(Problem) as refused:
        WebSocket.open(f"{service.url}{path}", {})
    assert refused.value.status == 401
    with pytest.raises(Problem) as refused:
        WebSocket.open(f"{service.url}/v1/runs/run_none/shell", {"Authorization": f"Bearer {strong}"})
    assert refused.value.status == 404
    ticket = service.http.post(
        "/v1/tickets", json={"path": path}, headers={"Authorization": f"Bearer {strong}"}
    ).json()["ticket"]
    opened = WebSocket.open(f"{service.url}{path}?ticket={ticket}", {})
    with pytest.raises(Problem) as refused:  # good once
        WebSocket.open(f"{service.url}{path}?ticket={ticket}", {})
    assert refused.value.type == "bad_ticket"
    opened.send(BINARY, b"echo here-$((1+1))\n")
    seen = b""
    while b"here-2" not in seen:
        seen += opened.receive().data
    token_id = next(t["id"] for t in service.call("GET", "/v1/tokens")["data"] if t["scopes"] == ["runs:debug"])
    service.call("DELETE", f"/v1/tokens/{token_id}")
    began = time.monotonic()
    while opened.receive().kind != CLOSE:
        pass
    assert time.monotonic() - began < 5
    opened.close()
