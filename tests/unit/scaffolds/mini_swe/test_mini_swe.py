import json
from typing import Any

import pytest

from service.domain.errors import Invalid
from service.domain.models import Dialect, TokenUsage
from tests.unit.scaffolds.programs import completed, context, model, plan, read, read_lines

MODEL = model(Dialect.OPENAI, max_output_tokens=64_000)


def _configuration(where: Any) -> dict[str, Any]:
    (file,) = plan("mini_swe", where).written
    assert file.path == ".home/mini_swe/run.yaml"
    return json.loads(file.data)


def test_command_line_and_environment() -> None:
    made = plan("mini_swe", context(MODEL))
    assert list(made.argv) == [
        *("/opt/kit/bin/mini", "-y", "--exit-immediately", "-m", "openai/m-1"),
        *("--agent-class", "workstead_mini.Agent", "--model-class", "workstead_mini.Model"),
        *("-c", "mini.yaml", "-c", "/workspace/.home/mini_swe/run.yaml"),
        *("-o", "/workspace/.home/mini_swe/trajectory.json"),
    ]
    assert list(made.token_variables) == ["OPENAI_API_KEY"]
    assert {name: value for name, value in made.env.items() if name.startswith(("MSWEA", "LITELLM"))} == {
        "MSWEA_CONFIGURED": "true",
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "2",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def test_configuration() -> None:
    where = context(MODEL, effort="max", max_turns=9, temperature=0, system_prompt="{{ x }}", command_timeout_s=120)
    assert _configuration(where) == {
        "run": {"task": "Do {deadline_unix} it"},
        "agent": {"cost_limit": 0, "step_limit": 9, "system_prompt": "{{ x }}"},
        "environment": {"timeout": 120},
        "model": {
            "model_kwargs": {
                "drop_params": True,
                "api_base": "http://127.0.0.1/v1",
                "timeout": 900,
                "max_tokens": 64_000,
                "temperature": 0,
                "reasoning_effort": "high",
                "allowed_openai_params": ["reasoning_effort"],
            }
        },
    }


def test_another_dialect() -> None:
    choice = model(Dialect.ANTHROPIC)
    made = plan("mini_swe", context(choice))
    assert "anthropic/m-1" in made.argv
    assert list(made.token_variables) == ["ANTHROPIC_API_KEY"]
    found = _configuration(context(choice))
    assert found["model"]["model_kwargs"] == {"drop_params": True, "api_base": "http://127.0.0.1", "timeout": 900}
    assert (found["agent"]["step_limit"], found["environment"]["timeout"]) == (0, 30)


@pytest.mark.parametrize("seconds", [0, 86_401, True, "60", 1.5])
def test_a_bad_time_for_commands(seconds: object) -> None:
    with pytest.raises(Invalid) as refused:
        plan("mini_swe", context(MODEL, command_timeout_s=seconds))
    assert refused.value.type == "bad_settings"


def test_events_of_a_success() -> None:
    events, report = read("mini_swe", "success")
    kinds = [*["tool.call", "tool.result"] * 3, "agent.message", "tool.call", "agent.usage", "agent.final"]
    assert [event.type for event in events] == kinds
    assert events[0].payload["name"] == "bash"
    assert events[0].payload["arguments"] == {"command": "ls -la /workspace"}
    assert events[0].payload["id"] == events[1].payload["id"]
    assert "output" in events[1].payload["output"]
    assert (report.status, report.text) == ("success", "Done — all files are written ✓")
    # What the provider sent, over four requests.
    assert report.usage == TokenUsage(
        input_tokens=4600, cached_input_tokens=1200, cache_write_tokens=126, output_tokens=206, reasoning_tokens=28
    )
    assert completed("mini_swe", 0, report)


def test_a_tool_that_fails() -> None:
    events, _ = read("mini_swe", "tool_error")
    assert [event.payload["is_error"] for event in events if event.type == "tool.result"] == [True, False, False, False]


def test_the_limit_of_turns_is_no_success_and_no_failure() -> None:
    """It exits 0 there, as at a success."""
    events, report = read("mini_swe", "max_turns")
    assert [event.type for event in events].count("tool.call") == 2
    assert (report.status, report.reason) == ("limit", "max_turns")
    assert report.usage is not None
    assert completed("mini_swe", 0, report)


def test_an_error_of_the_provider() -> None:
    _, report = read("mini_swe", "unauthorized")
    assert (report.status, report.reason) == ("error", "AuthenticationError")
    assert not completed("mini_swe", 0, report)


def test_a_killed_program_has_said_what_it_used() -> None:
    line = {"workstead": "message", "message": {"role": "assistant"}, "usage": {"prompt_tokens": 5}}
    _, report = read_lines("mini_swe", [json.dumps(line).encode()])
    assert (report.status, report.usage) == (None, TokenUsage(input_tokens=5))
    assert not completed("mini_swe", None, report, signal=9)


def test_an_answer_that_is_no_call() -> None:
    message = {"role": "user", "content": "Tool call error", "extra": {"interrupt_type": "FormatError"}}
    lines = [json.dumps({"workstead": "message", "message": message, "usage": {"prompt_tokens": 7}}).encode()]
    events, report = read_lines("mini_swe", lines)
    assert [(event.type, event.payload["text"]) for event in events] == [("agent.warning", "Tool call error")]
    assert report.usage == TokenUsage(input_tokens=7)


def test_arguments_that_are_no_json_stay_as_they_are() -> None:
    call = {"id": "c", "function": {"name": "bash", "arguments": "{"}}
    message = {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [call, 7]}
    events, _ = read_lines("mini_swe", [json.dumps({"workstead": "message", "message": message}).encode()])
    assert [event.type for event in events] == ["agent.thinking", "tool.call"]
    assert events[1].payload == {"id": "c", "name": "bash", "arguments": "{"}


@pytest.mark.parametrize(
    "line", [b"Saved trajectory", b'{"workstead":"later"}', b'{"workstead":"message","message":1}']
)
def test_unknown_lines_stay_raw(line: bytes) -> None:
    assert read_lines("mini_swe", [line])[0] == []
