"""Works of others that a source brings: graded once each, by file, as those of the named agent."""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import httpx

from tests.unit.workstead.fake_api import Script, run_body, sync_client
from workstead.cli.import_works import grade_works
from workstead.importers.contract import Delivered, Imported
from workstead.models import Benchmark

DATA = b"PK work"
SHA = hashlib.sha256(DATA).hexdigest()
BENCHMARK = Benchmark.model_validate({"id": "bench_1", "name": "set", "version": "1", "counts": {}})


def items(request: httpx.Request) -> httpx.Response:
    assert request.url.path == "/v1/benchmarks/bench_1/items"
    task = {"id": "task_a", "name": "payworthy/a", "digest": "sha256:00"}
    return httpx.Response(200, json={"data": [{"key": "a", "task": task}, {"key": "b", "task": None}], "next": None})


def graded(tmp_path: Path, agent: str) -> tuple[Script, list[str], list[tuple[int, int]]]:
    (tmp_path / "work").write_bytes(DATA)
    refs = [{"path": "texts/work.docx", "sha256": SHA, "size_bytes": len(DATA)}]
    made = tempfile.TemporaryDirectory()
    works = [Delivered("a", refs), Delivered("b", refs)]
    imported = Imported({"items": []}, {}, [], made, works, {SHA: tmp_path / "work"})
    missing = httpx.Response(200, json={"missing": []})
    script = Script(items, missing, httpx.Response(201, json=run_body()))
    told: list[tuple[int, int]] = []
    with imported, sync_client(script) as client:
        left_out = grade_works(client, BENCHMARK, imported, agent, lambda done, total: told.append((done, total)))
    assert script.left == 0
    return script, left_out, told


def test_a_work_is_graded_as_that_of_the_named_agent(tmp_path: Path) -> None:
    script, left_out, told = graded(tmp_path, "solver-2025")
    assert (left_out, told) == (["b"], [(1, 1)])
    body: dict[str, Any] = json.loads(script.bodies[-1])
    assert body == {
        "task": "task_a",
        "agent": "solver-2025",
        "files": [{"path": "texts/work.docx", "sha256": SHA}],
        "labels": {"benchmark": "set", "imported": "work"},
    }


def test_the_same_work_of_the_same_agent_is_asked_for_under_one_key(tmp_path: Path) -> None:
    keys = [graded(tmp_path, agent)[0].requests[-1].headers["idempotency-key"] for agent in ("x", "x", "y")]
    assert keys[0] == keys[1]
    assert keys[0] != keys[2]


def test_the_agent_of_uploads_is_there_already(tmp_path: Path) -> None:
    assert "agent" not in json.loads(graded(tmp_path, "upload")[0].bodies[-1])
