"""``workstead models …``: what is asked for, what is shown, and that a key is never printed."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server

MODEL: dict[str, Any] = {
    "id": "mdl_1", "name": "acme/one", "revision": 3, "has_credential": True,
    "spec": {"dialect": "openai", "efforts": ["low", "high"]},
}  # fmt: skip
BREAKER = {"model_id": "mdl_1", "model": "acme/one", "state": "open", "reason": "\x1b[2Jbilling"}
SECRET = "sk-NeverShown"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def ok(**body: Any) -> httpx.Response:
    return httpx.Response(200, json=body)


def page(*items: dict[str, Any]) -> httpx.Response:
    return ok(data=list(items), next=None)


def test_list_shows_what_is_shut_and_why(server: Server) -> None:
    result = server.run("models", "list", answers=[page(MODEL), page(BREAKER)])
    assert result.exit_code == 0, result.output
    assert "acme/one" in result.stdout
    assert "low high" in result.stdout
    assert "billing" in result.stdout
    assert "\x1b" not in result.stdout


def test_add_copies_a_public_model(server: Server) -> None:
    spec: dict[str, Any] = {"name": "acme/one", "provider": "acme", "efforts": []}
    made = httpx.Response(201, json=MODEL | {"has_credential": False})
    result = server.run("models", "add", "acme/one", answers=[page(spec), made])
    assert result.exit_code == 0, result.output
    assert server.asked == [("GET", "/v1/model-catalogue"), ("POST", "/v1/models")]
    assert json.loads(server.script.bodies[1]) == spec
    unknown = server.run("models", "add", "acme/two", answers=[page(spec)])
    assert unknown.exit_code == 1
    assert "acme/two" in unknown.stderr


def test_add_takes_an_entry_of_ones_own(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "lab/x"\nefforts = ["low"]\n')
    result = server.run("models", "add", str(path), answers=[httpx.Response(201, json=MODEL)])
    assert result.exit_code == 0, result.output
    assert json.loads(server.script.bodies[0]) == {"name": "lab/x", "efforts": ["low"]}
    path.write_text("name = ")
    assert server.run("models", "add", str(path), answers=[]).exit_code == 1


def test_a_key_comes_from_standard_input_or_a_variable(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"purpose": "judge", "state": "ready", "hint": "ab12"}
    words = ["models", "credential", "acme/one"]
    result = server.run(*words, "--purpose", "judge", answers=[page(MODEL), ok(**state)], stdin=f"{SECRET}\n")
    assert result.exit_code == 0, result.output
    assert json.loads(server.script.bodies[1]) == {"secret": SECRET, "purpose": "judge"}
    assert SECRET not in result.output
    monkeypatch.setenv("ACME_KEY", SECRET)
    result = server.run(*words, "--from-env", "ACME_KEY", answers=[page(MODEL), ok(**state)])
    assert json.loads(server.script.bodies[1])["secret"] == SECRET
    assert server.run(*words, "--from-env", "NOTHING", answers=[page(MODEL)]).exit_code == 1
    gone = server.run(*words, "--remove", answers=[page(MODEL), httpx.Response(204)])
    assert (gone.exit_code, server.asked[-1]) == (0, ("DELETE", "/v1/models/mdl_1/credential"))


@pytest.mark.parametrize(("works", "code"), [(True, 0), (False, 1)])
def test_check_exits_by_what_was_found(server: Server, works: bool, code: int) -> None:
    checks = [{"name": "stream", "state": "ok", "detail": "42 tokens"}, {"name": "image", "state": "failed"}]
    queued = {"id": "op_1", "kind": "model_check", "state": "queued"}
    ended = queued | {
        "state": "succeeded",
        "ended_at": "2026-01-05T09:00:00Z",
        "result": {"ok": works, "checks": checks},
    }
    answers = [page(MODEL), httpx.Response(202, json=queued), ok(**ended)]
    result = server.run("models", "check", "acme/one", answers=answers)
    assert result.exit_code == code, result.output
    assert "42 tokens" in result.stdout


@pytest.mark.parametrize(("word", "state"), [("hold", "open"), ("resume", "closed")])
def test_hold_and_resume(server: Server, word: str, state: str) -> None:
    result = server.run("models", word, "mdl_1", answers=[ok(**MODEL), ok(**BREAKER)])
    assert result.exit_code == 0, result.output
    assert json.loads(server.script.bodies[1])["state"] == state
    assert server.asked[1] == ("PUT", "/v1/breakers/mdl_1")


def test_an_unknown_model_is_said_in_words(server: Server) -> None:
    result = server.run("models", "delete", "acme/none", answers=[page()])
    assert result.exit_code == 1
    assert "acme/none" in result.stderr
