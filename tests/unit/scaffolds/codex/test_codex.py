import tomllib

import pytest

from service.domain.models import Dialect, TokenUsage
from tests.unit.scaffolds.programs import context, model, plan, read, read_lines

MODEL = model(Dialect.OPENAI, context_window=200_000, efforts=("low", "high", "xhigh", "ultra"))
_FIXED = ["/opt/kit/bin/codex", "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]


def _settings(argv: list[str]) -> dict[str, object]:
    """Read every ``-c`` as the program does: a line of TOML."""
    given = [argv[i + 1] for i, part in enumerate(argv) if part == "-c"]
    found: dict[str, object] = {}
    for line in given:
        found |= tomllib.loads(line)
    return found


def test_command_line() -> None:
    argv = list(plan("codex", context(MODEL, effort="max", system_prompt='Say "é"\n\x7f\\')).argv)
    assert argv[:5] == _FIXED
    assert argv[-3:] == ["-m", "m-1", "-"]
    assert [argv[i + 1] for i, part in enumerate(argv) if part == "--disable"] == [
        *("unbounded_connection_retries", "plugins", "apps")
    ]
    assert _settings(argv) == {
        "model_provider": "workstead",
        "model_providers": {
            "workstead": {
                "name": "workstead",
                "base_url": "http://127.0.0.1/v1",
                "env_key": "OPENAI_API_KEY",
                "wire_api": "responses",
                "request_max_retries": 2,
                "stream_max_retries": 2,
                "stream_idle_timeout_ms": 900_000,
            }
        },
        "model_reasoning_effort": "xhigh",
        "model_context_window": 200_000,
        "developer_instructions": 'Say "é"\n\x7f\\',
        "web_search": "disabled",
        "analytics": {"enabled": False},
        "check_for_update_on_startup": False,
    }


def test_environment() -> None:
    made = plan("codex", context(MODEL))
    assert made.env["CODEX_HOME"] == "/workspace/.home/.codex"
    assert [file.path for file in made.written] == [".home/.codex/config.toml"]
    assert list(made.token_variables) == ["OPENAI_API_KEY"]


@pytest.mark.parametrize(
    ("settings", "network", "off"),
    [({}, "none", True), ({}, "web", False), ({"provider_tools": "allow"}, "none", False),
     ({"provider_tools": "refuse"}, "web", True)],
)  # fmt: skip
def test_search_of_the_provider_follows_the_policy(settings: dict[str, str], network: str, off: bool) -> None:
    made = plan("codex", context(MODEL, **settings), network=network)
    assert ("web_search" in _settings(list(made.argv))) is off


def test_events_of_a_success() -> None:
    events, report = read("codex", "success")
    kinds = [*["tool.call", "tool.result"] * 3, "agent.message", "agent.usage", "agent.final"]
    assert [event.type for event in events] == kinds
    assert events[0].payload["arguments"] == {"command": "/bin/bash -lc 'ls -la /workspace'"}
    assert "output" in events[1].payload["output"]
    assert events[4].payload == {
        "id": "item_2", "name": "apply_patch",
        "arguments": {"changes": [{"path": "/workspace/output/summary.md", "kind": "add"}]},
    }  # fmt: skip
    assert (report.status, report.text) == ("success", "Done — all files are written ✓")
    # What the provider sent, over four requests.
    assert report.usage == TokenUsage(
        input_tokens=4600, cached_input_tokens=1200, cache_write_tokens=126, output_tokens=206, reasoning_tokens=28
    )


def test_thinking() -> None:
    events, _ = read("codex", "thinking")
    assert [event.type for event in events[:2]] == ["agent.thinking", "tool.call"]


def test_a_tool_that_fails() -> None:
    events, _ = read("codex", "tool_error")
    assert [event.payload["is_error"] for event in events if event.type == "tool.result"] == [True, False, False, False]


def test_an_item_called_error_is_a_warning() -> None:
    line = b'{"type":"item.completed","item":{"id":"i","type":"error","message":"no metadata"}}'
    events, report = read_lines("codex", [line])
    assert [(event.type, event.payload["text"]) for event in events] == [("agent.warning", "no metadata")]
    assert report.status is None


def test_a_result_whose_call_was_not_announced_brings_it() -> None:
    line = b'{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"x","exit_code":0}}'
    assert [event.type for event in read_lines("codex", [line])[0]] == ["tool.call", "tool.result"]


def test_reconnecting_is_a_warning_and_the_end_an_error() -> None:
    events, report = read("codex", "unauthorized")
    assert [event.type for event in events] == [*["agent.warning"] * 3, "agent.final"]
    assert (report.status, report.reason) == ("error", "turn_failed")
