import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server

FILE: dict[str, Any] = {"judge_model": "j", "rubrics": [{"rubric": "Zahlen für \x1b[31m " + "x" * 300}]}
GRADING = {
    "id": "grd_1",
    "run_id": "run_1",
    "method": "rubric_chain",
    "state": "graded",
    "score": 6.0,
    "max_score": 16.0,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def test_export_writes_the_file_as_it_is(server: Server, tmp_path: Path) -> None:
    done = server.run("grade", "jobbench", "export", "grd_1", answers=[httpx.Response(200, json=FILE)])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == FILE
    assert "\x1b" not in done.stdout
    assert server.asked == [("GET", "/v1/gradings/grd_1/jobbench")]
    path = tmp_path / "j_judge.json"
    done = server.run("grade", "jobbench", "export", "grd_1", "-o", str(path), answers=[httpx.Response(200, json=FILE)])
    assert json.loads(path.read_text()) == FILE
    assert "Zahlen für" in path.read_text()


def test_import_sends_the_file(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "j_judge.json"
    path.write_text(json.dumps(FILE))
    words = ("grade", "jobbench", "import", "run_1", str(path))
    done = server.run(*words, "--primary", answers=[httpx.Response(201, json=GRADING)])
    assert (done.exit_code, done.stdout.strip()) == (0, "grd_1: 6 of 16")
    assert json.loads(server.script.bodies[0]) == {"result": FILE, "primary": True}
    assert server.asked == [("POST", "/v1/runs/run_1/gradings/jobbench")]
    done = server.run(*words, "--json", answers=[httpx.Response(201, json=GRADING)])
    assert json.loads(done.stdout)["id"] == "grd_1"


@pytest.mark.parametrize("text", ["no json", "[]", "\udc80"])
def test_what_is_no_object_is_not_sent(server: Server, tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    done = server.run("grade", "jobbench", "import", "run_1", str(path), answers=[])
    assert (done.exit_code, server.asked) == (1, [])
    assert "JSON" in done.output
