import json
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server

CHECK = {"id": "sc_1", "code": "malicious_instructions", "message": "The page asks for money."}


def waiting(id: str = "cnf_1", state: str = "pending") -> dict[str, Any]:
    times = {"created_at": "2026-11-01T12:00:00.000Z", "decided_at": None}
    known = {"id": id, "run_id": "run_1", "attempt": 1, "state": state, "intent": "to pay", "decided_by": None}
    return {**known, **times, "checks": [CHECK]}


def listed(*items: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, json={"data": list(items), "next": None})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


@pytest.mark.parametrize(("flags", "decision"), [((), "acknowledge"), (("--deny",), "deny")])
def test_the_pending_one_is_shown_and_decided(server: Server, flags: tuple[str, ...], decision: str) -> None:
    answers = [listed(waiting("cnf_2"), waiting("cnf_1", "denied")), httpx.Response(200, json=waiting("cnf_2", "done"))]
    done = server.run("runs", "confirm", "run_1", *flags, answers=answers, stdin="y\n")
    assert done.exit_code == 0, done.output
    assert CHECK["message"] in done.output
    assert server.asked == [("GET", "/v1/runs/run_1/confirmations"), ("POST", "/v1/runs/run_1/confirmations/cnf_2")]
    assert json.loads(server.script.bodies[-1]) == {"decision": decision}


def test_who_says_no_decides_nothing(server: Server) -> None:
    done = server.run("runs", "confirm", "run_1", answers=[listed(waiting())], stdin="n\n")
    assert done.exit_code == 1
    assert len(server.asked) == 1


@pytest.mark.parametrize("items", [(), (waiting("cnf_1"), waiting("cnf_2")), (waiting("cnf_1", "lapsed"),)])
def test_one_is_named_where_it_is_not_clear(server: Server, items: tuple[dict[str, Any], ...]) -> None:
    done = server.run("runs", "confirm", "run_1", "--yes", answers=[listed(*items)])
    assert done.exit_code == 1
    assert len(server.asked) == 1
