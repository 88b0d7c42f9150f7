import json
from typing import Any

import pytest

from service.domain.errors import Invalid
from service.domain.models import Dialect, TokenUsage
from service.scaffolds.openclaw import parser
from tests.unit.scaffolds.programs import completed, context, model, plan, read, read_lines

MODEL = model(Dialect.OPENAI, context_window=400_000)


def _configuration(where: Any) -> dict[str, Any]:
    (file,) = [w for w in plan("openclaw", where).written if w.path == ".home/openclaw/openclaw.json"]
    return json.loads(file.data)


def test_command_line() -> None:
    made = plan("openclaw", context(MODEL, effort="max"))
    assert list(made.argv) == [
        *("/opt/kit/bin/openclaw", "agent", "exec", "--json", "--config", "/workspace/.home/openclaw/openclaw.json"),
        *("--cwd", "/workspace", "--model", "workstead/m-1", "--thinking", "high"),
        # Longer than the run's own clock of 90.5 s.
        *("--timeout", "3690", "--message-file", "/workspace/.home/openclaw/prompt.md"),
    ]
    (prompt,) = [w for w in made.written if w.path == ".home/openclaw/prompt.md"]
    assert prompt.data == b"Do {deadline_unix} it"
    assert list(made.token_variables) == ["GATEWAY_TOKEN"]


def test_configuration() -> None:
    assert _configuration(context(MODEL)) == {
        "models": {
            "providers": {
                "workstead": {
                    "baseUrl": "http://127.0.0.1/v1",
                    "apiKey": "${GATEWAY_TOKEN}",
                    "api": "openai-completions",
                    "models": [
                        {
                            "id": "m-1",
                            "name": "m-1",
                            "contextWindow": 400_000,
                            "maxTokens": 32_000,
                            "reasoning": True,
                            "input": ["text"],
                            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                            "compat": {"supportsUsageInStreaming": True, "supportsReasoningEffort": True},
                        }
                    ],
                }
            }
        },
        "agents": {"defaults": {"model": {"primary": "workstead/m-1"}}},
        "tools": {"exec": {"backgroundMs": 1_200_000}},
    }


def test_another_dialect() -> None:
    provider = _configuration(context(model(Dialect.ANTHROPIC)))["models"]["providers"]["workstead"]
    assert (provider["api"], provider["baseUrl"]) == ("anthropic-messages", "http://127.0.0.1")


@pytest.mark.parametrize("settings", [{"max_turns": 3}, {"temperature": 1}, {"system_prompt": "x"}, {"other": 1}])
def test_what_it_cannot_follow_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        plan("openclaw", context(MODEL, **settings))
    assert refused.value.type == "unsupported_setting"


def test_events_of_a_success() -> None:
    events, report = read("openclaw", "success")
    assert [event.type for event in events] == ["agent.message", "agent.usage", "agent.final"]
    assert (report.status, report.text) == ("success", "Done — all files are written ✓")
    # What the provider sent, over four requests.
    assert report.usage == TokenUsage(
        input_tokens=4600, cached_input_tokens=1200, cache_write_tokens=126, output_tokens=206, reasoning_tokens=28
    )
    assert completed("openclaw", 0, report)
    assert not completed("openclaw", 2, report)


def test_an_error_of_the_provider() -> None:
    _, report = read("openclaw", "unauthorized")
    assert report.status == "error"
    assert "401" in report.text
    assert not completed("openclaw", 0, report)


def _object(**fields: Any) -> list[bytes]:
    return json.dumps(fields, indent=2).encode().split(b"\n")


def test_its_own_clock_is_an_error() -> None:
    _, report = read_lines("openclaw", _object(ok=False, status="timeout", final="so far"))
    assert (report.status, report.reason, report.text, report.usage) == ("error", "timeout", "so far", None)


def test_an_object_among_other_output() -> None:
    lines = [b"{", b"noise", b"{", *_object(ok=True, status="ok", final="a\n}\n{")[1:], b"}", b"tail"]
    _, report = read_lines("openclaw", lines)
    assert (report.status, report.text) == ("success", "a\n}\n{")


def test_an_object_that_says_nothing_of_an_ending() -> None:
    assert read_lines("openclaw", _object(other=1))[0] == []
    assert read_lines("openclaw", [b"{", b"  no json", b"}"])[0] == []


def test_an_endless_object_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "MAX_OBJECT_BYTES", 100)
    assert read_lines("openclaw", _object(ok=True, status="ok", final="x" * 100))[0] == []
