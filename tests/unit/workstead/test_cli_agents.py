import json
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server

AGENT: dict[str, Any] = {"id": "agt_1", "label": "c", "scaffold": "codex@0.171.0", "model": "m", "settings": {}}
SHIPPED = {"name": "codex", "version": "0.171.0", "kind": "codex", "kit": "kits/codex"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def test_settings_are_json_or_text(server: Server) -> None:
    given = ["--set", "effort=max", "--set", "max_turns=50", "--set", "system_prompt=a=b"]
    done = server.run(
        "agents", "create", "codex@latest", "--model", "m", *given, answers=[httpx.Response(201, json=AGENT)]
    )
    assert done.exit_code == 0, done.output
    assert done.output == "agt_1 c\n"
    assert json.loads(server.script.requests[0].content)["settings"] == {
        "effort": "max", "max_turns": 50, "system_prompt": "a=b",
    }  # fmt: skip


@pytest.mark.parametrize("pair", ["effort", "=max", ""])
def test_a_setting_without_name_or_value_is_refused(server: Server, pair: str) -> None:
    done = server.run("agents", "create", "codex@latest", "--set", pair, answers=[])
    assert done.exit_code == 2
    assert server.asked == []


def test_shipped_scaffolds(server: Server) -> None:
    answers = [httpx.Response(200, json={"data": [SHIPPED], "next": None})]
    done = server.run("scaffolds", "list", "--shipped", answers=answers)
    assert server.asked == [("GET", "/v1/scaffold-catalogue")]
    assert "codex@0.171.0" in done.output
    done = server.run("scaffolds", "list", "--shipped", "--json", answers=answers)
    assert json.loads(done.output) == SHIPPED
