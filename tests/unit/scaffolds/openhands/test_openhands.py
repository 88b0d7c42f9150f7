import json
from typing import Any

import pytest

from service.domain.models import Dialect, TokenUsage
from tests.unit.scaffolds.programs import completed, context, model, plan, read, read_lines

MODEL = model(Dialect.OPENAI, context_window=400_000, efforts=("minimal", "low", "xhigh"))


def _settings(where: Any) -> dict[str, Any]:
    (file,) = plan("openhands", where).written
    assert file.path == ".home/openhands/settings.json"
    return json.loads(file.data)


def test_command_line_and_environment() -> None:
    made = plan("openhands", context(MODEL))
    assert list(made.argv) == ["/opt/kit/bin/openhands-run", "/workspace/.home/openhands/settings.json"]
    assert made.env["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    assert list(made.token_variables) == ["OPENHANDS_TOKEN"]
    assert [step.signal for step in made.stop] == ["INT", "TERM"]


def test_settings() -> None:
    found = _settings(context(MODEL, effort="max", max_turns=9, temperature=0.5, system_prompt="Be brief."))
    assert found == {
        "prompt": "Do {deadline_unix} it",
        "workspace": "/workspace",
        "max_turns": 9,
        "system_prompt": "Be brief.",
        "llm": {
            "model": "openai/m-1",
            "base_url": "http://127.0.0.1/v1",
            "num_retries": 2,
            "retry_min_wait": 1,
            "retry_max_wait": 8,
            "timeout": 900,
            "reasoning_effort": "xhigh",
            "temperature": 0.5,
            "max_input_tokens": 400_000,
        },
    }


def test_no_effort_is_said_as_none() -> None:
    found = _settings(context(model(Dialect.ANTHROPIC)))["llm"]
    assert (found["model"], found["base_url"]) == ("anthropic/m-1", "http://127.0.0.1")
    assert "reasoning_effort" in found
    assert found["reasoning_effort"] is None


def test_events_of_a_success() -> None:
    events, report = read("openhands", "success")
    kinds = [*["tool.call", "tool.result"] * 3, "agent.message", "tool.call", "tool.result"]
    assert [event.type for event in events] == [*kinds, "agent.usage", "agent.final"]
    assert events[0].payload["name"] == "terminal"
    assert events[0].payload["arguments"]["command"] == "ls -la /workspace"
    assert events[0].payload["id"] == events[1].payload["id"]
    assert "output" in events[1].payload["output"]
    assert (report.status, report.text) == ("success", "Done — all files are written ✓")
    # What the provider sent, over four requests; of Responses it counts what was written to a cache as input.
    assert report.usage == TokenUsage(
        input_tokens=4726, cached_input_tokens=1200, cache_write_tokens=0, output_tokens=206, reasoning_tokens=28
    )
    assert completed("openhands", 0, report)


def test_a_tool_that_fails() -> None:
    events, _ = read("openhands", "tool_error")
    failed = [event.payload["is_error"] for event in events if event.type == "tool.result"]
    assert failed[:2] == [True, False]


def test_the_limit_of_turns() -> None:
    _, report = read("openhands", "max_turns")
    assert (report.status, report.reason) == ("limit", "max_turns")
    assert completed("openhands", 3, report)


def test_an_error_decides_not_the_exit_code() -> None:
    events, report = read("openhands", "unauthorized")
    assert "agent.warning" in [event.type for event in events]
    assert (report.status, report.reason) == ("error", "LLMBadRequestError")
    assert not completed("openhands", 0, report)


def _line(kind: str, **fields: Any) -> bytes:
    return json.dumps({"kind": kind, **fields}).encode()


def test_an_end_after_an_error_is_no_success() -> None:
    lines = [_line("ConversationErrorEvent", code="X", detail="why"), _line("WorksteadEnd", status="finished")]
    _, report = read_lines("openhands", lines)
    assert (report.status, report.reason, report.text, report.usage) == ("error", "X", "why", None)


@pytest.mark.parametrize("status", ["stuck", "stopped", "error", "paused"])
def test_other_endings_are_errors(status: str) -> None:
    _, report = read_lines("openhands", [_line("WorksteadEnd", status=status, error="e")])
    assert (report.status, report.reason, report.text) == ("error", status, "e")


def test_messages_and_thoughts() -> None:
    said = {"content": [{"text": "Hello"}], "reasoning_content": "Hm."}
    events, _ = read_lines("openhands", [_line("MessageEvent", source="agent", llm_message=said)])
    assert [(event.type, event.payload["text"]) for event in events] == [
        ("agent.thinking", "Hm."),
        ("agent.message", "Hello"),
    ]
    assert read_lines("openhands", [_line("MessageEvent", source="user", llm_message=said)])[0] == []


def test_a_tool_call_that_the_sdk_refuses() -> None:
    (event,) = read_lines("openhands", [_line("AgentErrorEvent", tool_call_id="c", error="bad arguments")])[0]
    assert event.payload == {"id": "c", "output": "bad arguments", "is_error": True}


@pytest.mark.parametrize("line", [b"text", b'{"kind":"SystemPromptEvent"}', b'{"kind":7}', b"[]"])
def test_unknown_lines_stay_raw(line: bytes) -> None:
    assert read_lines("openhands", [line])[0] == []
