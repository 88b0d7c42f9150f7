"""Small tasks and scaffolds for journeys, made through the API as a client makes them."""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.journeys.stack import Stack

ANSWERS = [{"id": "total", "type": "int"}, {"id": "name", "type": "string"}]
RIGHT = {"total": 42, "name": "Ada"}
GRADER = {
    "method": "exact",
    "settings": {"file": "output/answers.json", "expected": {"hidden": "answers.json"}, "answers": ANSWERS},
}


def upload(stack: Stack, data: bytes) -> dict[str, Any]:
    """Upload a blob; return its digest and size as a file reference has them."""
    digest = hashlib.sha256(data).hexdigest()
    stack.call("PUT", f"/v1/blobs/{digest}", content=data)
    return {"sha256": digest, "size_bytes": len(data)}


def make_task(
    stack: Stack,
    visible: Mapping[str, bytes] | None = None,
    limits: Mapping[str, Any] | None = None,
    **fields: Any,
) -> str:
    hidden = {
        "answers.json": json.dumps(RIGHT).encode(),
        "solution/output/answers.json": json.dumps(RIGHT).encode(),
    }
    manifest = {
        "name": f"journeys/{uuid.uuid4().hex[:12]}",
        "instruction": "Write output/answers.json.",
        "visible": [{"path": p, **upload(stack, d)} for p, d in (visible or {}).items()],
        "hidden": [{"path": p, **upload(stack, d)} for p, d in hidden.items()],
        "limits": {"wall_clock_s": 60, "disk_bytes": 64 << 20, "memory_bytes": 256 << 20, **(limits or {})},
        "graders": [GRADER],
        **fields,
    }
    return str(stack.call("POST", "/v1/tasks", json=manifest)["id"])


def make_agent(stack: Stack, argv: Sequence[str], files: Mapping[str, bytes] | None = None, **fields: Any) -> str:
    """Register a scaffold with this command and return its agent's id."""
    name = f"s{uuid.uuid4().hex[:12]}"
    manifest = {
        "name": name, "version": "1", "kind": "command", "argv": list(argv),
        "files": [{"path": p, **upload(stack, d)} for p, d in (files or {}).items()], **fields,
    }  # fmt: skip
    stack.call("POST", "/v1/scaffolds", json=manifest)
    return str(stack.call("POST", "/v1/agents", json={"scaffold": f"{name}@1"})["id"])


def python_agent(stack: Stack, program: str, **fields: Any) -> str:
    """Return an agent that runs ``program`` with the environment's own Python."""
    argv = ["python3", "/workspace/.home/kit/agent.py"]
    return make_agent(stack, argv, {"agent.py": program.encode()}, **fields)


def submit(stack: Stack, task: str, agent: str, **fields: Any) -> str:
    key = uuid.uuid4().hex
    body = {"task": task, "agent": agent, **fields}
    return str(stack.call("POST", "/v1/runs", json=body, headers={"Idempotency-Key": key})["id"])


@dataclass(frozen=True)
class Record:
    """What a run left, checked for the promises that every run has."""

    run: dict[str, Any]
    events: list[dict[str, Any]]

    def output(self, attempt: int, stream: str = "stdout") -> str:
        """Concatenate an attempt's output, checking that offsets leave no gap and no overlap."""
        at, text = 0, ""
        for event in self.events:
            if event["type"] != "output" or event["attempt"] != attempt or event["payload"]["stream"] != stream:
                continue
            assert event["payload"]["offset"] == at, (event, at)
            at += event["payload"]["bytes"]
            text += event["payload"]["text"]
        return text

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [e for e in self.events if e["type"] == kind]


def record(stack: Stack, run_id: str, timeout_s: float = 120) -> Record:
    """Wait for the run's end and read everything of it; event numbers are 1…N without a gap."""
    run = stack.wait_run(run_id, timeout_s)
    events = stack.events(run_id)
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert sum(e["type"] == "run.phase" and e["payload"]["phase"] == "done" for e in events) == 1
    return Record(run, events)
