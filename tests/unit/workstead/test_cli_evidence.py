"""``workstead evidence show``: made if need be, safe for a terminal, cut of a whole, whole of one file."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server

SHA = "a" * 64
PATH = "/v1/runs/run_1/evidence"
IMAGE = {
    "label": "page 1",
    "source": "page",
    "sha256": SHA,
    "media_type": "image/png",
    "width": 8,
    "height": 9,
    "size_bytes": 3,
}
FILE: dict[str, Any] = {
    "path": "output/a\x1b[2J.pdf", "sha256": SHA, "size_bytes": 3, "kind": "pdf", "state": "extracted", "notes": ["OCR"],
    "parts": [{"kind": "page", "label": "page 1", "text": "\x1b]0;title\x07" + "x" * 3000 + "END"}], "images": [IMAGE],
    "omitted": {"chars": 7, "rows": 0, "parts": 0, "images": 2}, "facts": {"pages": 4},
}  # fmt: skip
BROKEN = {
    "path": "output/b.pdf",
    "sha256": SHA,
    "size_bytes": 1,
    "kind": "pdf",
    "state": "failed",
    "error": "encrypted",
    "detail": "why",
}


def answer(state: str, **more: Any) -> httpx.Response:
    body = {
        "run_id": "run_1",
        "state": state,
        "files": [FILE, BROKEN],
        "skipped": [["output/l", "skipped_symlink"]],
        "not_listed": 5,
    }
    return httpx.Response(200, json=body | more)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def test_it_is_shown_with_what_failed_and_what_is_missing(server: Server) -> None:
    done = server.run("evidence", "show", "run_1", answers=[answer("ready")])
    assert done.exit_code == 0, done.output
    assert server.asked == [("GET", PATH)]
    for said in (
        "encrypted: why",
        "pages 4",
        "left out: 7 characters, 2 pictures",
        "output/l",
        "5 more files",
        "1013 more characters",
    ):
        assert said in done.stdout, said
    assert "END" not in done.stdout
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout


def test_one_file_is_shown_whole_and_as_json(server: Server) -> None:
    one = answer("ready", files=[FILE])
    done = server.run("evidence", "show", "run_1", "--file", "output/x", answers=[answer("ready"), one])
    assert "END" in done.stdout
    assert server.script.requests[1].url.params["file"] == "output/x"
    done = server.run("evidence", "show", "run_1", "--json", answers=[answer("ready")])
    assert json.loads(done.stdout)["files"][1]["error"] == "encrypted"
    assert "\x1b" not in done.stdout


def test_what_is_not_there_is_made(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    answers = [
        answer("unavailable", cause="not_made"),
        answer("pending"),
        answer("ready"),
        httpx.Response(200, content=b"png"),
    ]
    done = server.run("evidence", "show", "run_1", "--images", str(folder), answers=answers)
    assert done.exit_code == 0, done.output
    assert server.asked == [("GET", PATH), ("POST", PATH), ("GET", PATH), ("GET", f"{PATH}/images/{SHA}")]
    assert (folder / f"{SHA[:16]}.png").read_bytes() == b"png"
    answers = [answer("unavailable"), answer("pending"), answer("unavailable", cause="room_failed")]
    done = server.run("evidence", "show", "run_1", answers=answers)
    assert (done.exit_code, "room_failed" in done.output) == (1, True)
