from decimal import Decimal

from service.domain.models import Dialect, TokenUsage
from tests.unit.scaffolds.programs import context, model, plan, read, read_lines

MODEL = model(Dialect.ANTHROPIC, max_output_tokens=32_000, efforts=("low", "high", "max"))


def test_command_line() -> None:
    made = plan("claude_code", context(MODEL, effort="max", max_turns=7, system_prompt="-Be brief."))
    assert list(made.argv) == [
        *("/opt/kit/bin/claude", "-p", "--output-format", "stream-json", "--verbose", "--model", "m-1"),
        *("--dangerously-skip-permissions", "--max-turns", "7", "--effort", "max"),
        "--append-system-prompt=-Be brief.",
    ]
    assert made.provenance["effort"] == "max"
    assert [(step.signal, step.wait_s) for step in made.stop] == [("INT", 10), ("TERM", 5)]


def test_command_line_without_settings() -> None:
    made = plan("claude_code", context(MODEL))
    assert made.argv[-1] == "--dangerously-skip-permissions"
    assert made.stdin == b"Do {deadline_unix} it"


def test_environment() -> None:
    made = plan("claude_code", context(MODEL))
    expected = {
        "HOME": "/workspace/.home",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "32000",
        "API_TIMEOUT_MS": "90000",
    }
    assert expected.items() <= made.env.items()
    assert list(made.token_variables) == ["ANTHROPIC_API_KEY"]
    # Whatever model it takes for a side job, it is one that the run has.
    assert {v for k, v in made.env.items() if k.endswith("_MODEL")} == {"m-1"}


def test_events_of_a_success() -> None:
    events, report = read("claude_code", "success")
    assert [event.type for event in events] == [*["tool.call", "tool.result"] * 3, *_END]
    call, result = events[0].payload, events[1].payload
    assert (call["name"], call["arguments"]) == ("Bash", {"command": "ls -la /workspace"})
    assert result["id"] == call["id"]
    assert ("output" in result["output"], result["is_error"]) == (True, False)
    assert events[-1].payload == {"status": "success", "text": "Done — all files are written ✓", "reason": "completed"}
    # What the provider sent, over four requests; not the sum of the lines' own figures.
    assert report.usage == TokenUsage(
        input_tokens=4600, cached_input_tokens=1200, cache_write_tokens=126, output_tokens=206, reasoning_tokens=28
    )
    assert report.cost_usd == Decimal("0.0177225")
    assert events[-2].payload["cost_usd"] == "0.0177225"


_END = ["agent.message", "agent.usage", "agent.final"]


def test_thinking() -> None:
    events, _ = read("claude_code", "thinking")
    said = [event.payload["text"] for event in events if event.type == "agent.thinking"]
    assert said == ["First the inputs, then the report — step by step."] * 4


def test_a_tool_that_fails() -> None:
    events, report = read("claude_code", "tool_error")
    first = next(event.payload for event in events if event.type == "tool.result")
    assert first["is_error"] is True
    assert "No such file" in first["output"]
    assert report.status == "success"


def test_retries_are_warnings() -> None:
    events, report = read("claude_code", "unauthorized")
    assert [event.payload["text"] for event in events if event.type == "agent.warning"] == [
        f"request failed (401): try {n} of 3 follows" for n in (1, 2, 3)
    ]
    assert (report.status, report.reason) == ("error", "api_error")


def test_an_error_whose_subtype_says_success() -> None:
    line = b'{"type":"result","subtype":"success","is_error":true,"terminal_reason":"aborted_tools","result":"x"}'
    assert read_lines("claude_code", [line])[1].status == "error"
