"""``workstead runs rerun`` and the method behind it."""

import json

import httpx
import pytest
from typer.testing import CliRunner

from tests.unit.workstead.fake_api import Script, client, run_body
from workstead.cli import run_again
from workstead.cli.app import app
from workstead.cli.run_again import values


async def test_the_request_says_what_is_different() -> None:
    script = Script(*[httpx.Response(201, json=run_body("run_2", derived_from="run_1")) for _ in range(2)])
    async with client(script) as api:
        run = await api.runs.rerun("run_1")
        await api.runs.rerun("run_1", mode="replay", overrides={"limits": {"wall_clock_s": 60}})
    assert (run.id, run.derived_from) == ("run_2", "run_1")
    assert [json.loads(body) for body in script.bodies] == [
        {"mode": "fresh", "overrides": {}},
        {"mode": "replay", "overrides": {"limits": {"wall_clock_s": 60}}},
    ]


def test_the_command_sends_what_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(httpx.Response(201, json=run_body("run_2")))
    monkeypatch.setattr(run_again, "AsyncClient", lambda: client(script))
    words = ["runs", "rerun", "run_1", "--replay", "-m", "a/b", "-s", "effort=max", "-s", "max_turns=null"]
    result = CliRunner().invoke(app, [*words, "--limit", "wall_clock_s=600", "-l", "week=49"])
    assert result.exit_code == 0, result.output
    assert "run_2: " in result.output
    (body,) = [json.loads(one) for one in script.bodies]
    assert body == {
        "mode": "replay",
        "overrides": {
            "model": "a/b",
            "settings": {"effort": "max", "max_turns": None},
            "limits": {"wall_clock_s": 600},
            "labels": {"week": "49"},
        },
    }


def test_values_are_json_or_text() -> None:
    assert values(["a=1", 'b={"c": [true]}', "d=plain", "e=null"]) == {
        "a": 1, "b": {"c": [True]}, "d": "plain", "e": None,
    }  # fmt: skip
