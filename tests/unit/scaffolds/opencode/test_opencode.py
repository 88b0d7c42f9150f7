import json
from dataclasses import replace
from typing import Any

import pytest

from service.domain.errors import Invalid
from service.domain.models import Dialect, TokenUsage
from tests.unit.scaffolds.programs import completed, context, model, plan, read, read_lines

MODEL = model(Dialect.OPENAI, context_window=400_000, max_output_tokens=64_000, efforts=("low", "high", "ultra"))


def _configuration(where: Any) -> dict[str, Any]:
    return json.loads(plan("opencode", where).env["OPENCODE_CONFIG_CONTENT"])


def test_command_line_and_environment() -> None:
    made = plan("opencode", context(MODEL), name="a/task")
    assert list(made.argv) == [
        *("/opt/kit/bin/opencode", "run", "--format", "json", "--thinking", "--title", "a/task"),
        *("-m", "workstead/m-1"),
    ]
    assert made.stdin == b"Do {deadline_unix} it"
    assert list(made.token_variables) == ["GATEWAY_TOKEN"]
    assert {name for name in made.env if name.startswith("OPENCODE_")} == {
        *("OPENCODE_CONFIG_CONTENT", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE"),
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
    }
    assert [step.signal for step in made.stop] == ["TERM"]


def test_configuration() -> None:
    found = _configuration(context(MODEL, effort="max", temperature=0.5, system_prompt="Be brief."))
    assert found == {
        "model": "workstead/m-1",
        "small_model": "workstead/m-1",
        "enabled_providers": ["workstead"],
        "provider": {
            "workstead": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "workstead",
                "options": {"baseURL": "http://127.0.0.1/v1", "apiKey": "{env:GATEWAY_TOKEN}", "timeout": False},
                "models": {
                    "m-1": {
                        "limit": {"context": 400_000, "output": 64_000},
                        "temperature": True,
                        "reasoning": True,
                        "tool_call": True,
                        "options": {"reasoningEffort": "high"},
                    }
                },
            }
        },
        "permission": "allow",
        "autoupdate": False,
        "share": "disabled",
        "instructions": ["/workspace/.home/.config/opencode/system_prompt.md"],
        "agent": {"build": {"temperature": 0.5}},
    }


def test_the_dialect_decides_the_package() -> None:
    choice = model(Dialect.ANTHROPIC, efforts=("low", "max"))
    provider = _configuration(context(choice, effort="low"))["provider"]["workstead"]
    assert (provider["npm"], provider["models"]["m-1"]["options"]) == ("@ai-sdk/anthropic", {"effort": "low"})
    with pytest.raises(Invalid) as refused:
        plan("opencode", context(model(Dialect.GEMINI)))
    assert refused.value.type == "dialect_unsupported"


def test_a_side_model_of_the_same_dialect_is_its_small_one() -> None:
    other, small = model(Dialect.GEMINI, upstream_id="g"), model(Dialect.OPENAI, upstream_id="s", efforts=())
    found = _configuration(replace(context(MODEL, effort="high"), side_models=[other, small]))
    assert found["small_model"] == "workstead/s"
    models = found["provider"]["workstead"]["models"]
    assert {name: "options" in entry for name, entry in models.items()} == {"s": False, "m-1": True}


def test_the_system_prompt_is_a_file_of_the_home() -> None:
    (file,) = plan("opencode", context(MODEL, system_prompt="Be brief.")).written
    assert (file.path, file.data) == (".home/.config/opencode/system_prompt.md", b"Be brief.")


def test_it_has_no_limit_of_turns() -> None:
    with pytest.raises(Invalid) as refused:
        plan("opencode", context(MODEL, max_turns=3))
    assert refused.value.type == "unsupported_setting"


def test_events_of_a_success() -> None:
    events, report = read("opencode", "success")
    kinds = [*["tool.call", "tool.result"] * 3, "agent.message", "agent.usage", "agent.final"]
    assert [event.type for event in events] == kinds
    assert events[0].payload["name"] == "bash"
    assert events[0].payload["arguments"] == {"command": "ls -la /workspace"}
    assert "output" in events[1].payload["output"]
    assert [event.payload["is_error"] for event in events if event.type == "tool.result"] == [False] * 3
    assert (report.status, report.text, report.reason) == ("success", "Done — all files are written ✓", "stop")
    # What the provider sent, over four requests; this client counts what was written to a cache as input.
    assert report.usage == TokenUsage(
        input_tokens=4726, cached_input_tokens=1200, cache_write_tokens=0, output_tokens=206, reasoning_tokens=28
    )
    assert completed("opencode", 0, report)
    assert not completed("opencode", 1, report)


def test_a_tool_that_fails() -> None:
    events, _ = read("opencode", "tool_error")
    assert [event.payload["is_error"] for event in events if event.type == "tool.result"] == [True, False, False, False]


def test_an_error_is_the_end() -> None:
    events, report = read("opencode", "unauthorized")
    assert [event.type for event in events] == ["agent.usage", "agent.final"]
    assert (report.status, report.reason) == ("error", "APIError")
    assert not completed("opencode", 0, report)


def _step(reason: str, **tokens: int) -> bytes:
    return json.dumps({"type": "step_finish", "part": {"reason": reason, "tokens": tokens}}).encode()


def test_only_the_last_step_says_how_it_ended() -> None:
    start = b'{"type":"step_start","part":{}}'
    _, report = read_lines("opencode", [_step("stop", input=1), start])
    assert (report.status, report.usage) == (None, TokenUsage(input_tokens=1))
    _, report = read_lines("opencode", [_step("stop", input=1), start, _step("tool-calls", input=2)])
    assert (report.status, report.usage) == (None, TokenUsage(input_tokens=3))
    assert not completed("opencode", 0, report)
    _, report = read_lines("opencode", [_step("length", output=5, reasoning=2)])
    assert (report.status, report.reason) == ("error", "length")
    assert report.usage == TokenUsage(output_tokens=7, reasoning_tokens=2)


@pytest.mark.parametrize("line", [b"", b"plain", b"[1]", b'{"type":"later"}', b'{"type":"step_finish","part":7}'])
def test_unknown_lines_stay_raw(line: bytes) -> None:
    assert read_lines("opencode", [line])[0] == []


def test_standard_error_is_not_read() -> None:
    assert read_lines("opencode", [_step("stop")], "stderr")[0] == []
