import json

import pytest

from service.domain.errors import Invalid
from service.domain.models import Dialect, TokenUsage
from tests.unit.scaffolds.programs import context, model, plan, read, read_lines

MODEL = model(Dialect.GEMINI, efforts=())


def test_command_line() -> None:
    made = plan("gemini_cli", context(MODEL, effort="max", max_turns=5, system_prompt="Be brief."))
    assert list(made.argv) == [
        *("/opt/kit/bin/gemini", "--skip-trust", "--output-format", "stream-json", "--approval-mode", "yolo"),
        *("-m", "m-1"),
    ]
    written = {file.path: file.data for file in made.written}
    assert written[".home/.gemini/GEMINI.md"] == b"Be brief."
    assert json.loads(written[".home/.gemini/settings.json"]) == {"model": {"maxSessionTurns": 5}}
    assert made.provenance["effort"] is None, "the model has no thinking levels: nothing is sent"


def test_effort_and_temperature() -> None:
    levels = model(Dialect.GEMINI, efforts=("low", "high"))
    (written,) = plan("gemini_cli", context(levels, effort="max", temperature=0.5)).written
    generation = {"temperature": 0.5, "thinkingConfig": {"thinkingLevel": "HIGH"}}
    override = {"match": {"model": "m-1"}, "modelConfig": {"generateContentConfig": generation}}
    assert json.loads(written.data) == {"modelConfigs": {"customOverrides": [override]}}


def test_a_model_that_the_program_replaces_is_refused() -> None:
    with pytest.raises(Invalid) as error:
        plan("gemini_cli", context(model(Dialect.GEMINI, upstream_id="gemini-3-pro-preview")))
    assert error.value.type == "model_renamed"


def test_environment() -> None:
    made = plan("gemini_cli", context(MODEL))
    assert made.env["GOOGLE_GEMINI_BASE_URL"] == "http://127.0.0.1"
    assert made.env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"].startswith("/opt/kit/")
    assert list(made.token_variables) == ["GEMINI_API_KEY"]
    assert list(made.written) == []
    assert [step.signal for step in made.stop] == ["TERM"]


def test_events_of_a_success() -> None:
    events, report = read("gemini_cli", "success")
    kinds = [*["tool.call", "tool.result"] * 3, "agent.message", "agent.usage", "agent.final"]
    assert [event.type for event in events] == kinds
    assert events[0].payload["arguments"] == {"command": "ls -la /workspace"}
    assert events[1].payload["id"] == events[0].payload["id"]
    # One message out of its pieces.
    assert events[-3].payload["text"] == "Done — all files are written ✓"
    # What the provider sent, over four requests; the dialect has no figure for what is written to a cache.
    assert report.usage == TokenUsage(
        input_tokens=4726, cached_input_tokens=1200, output_tokens=206, reasoning_tokens=28
    )


def test_what_the_user_said_is_no_message_of_the_agent() -> None:
    line = b'{"type":"message","role":"user","content":"Do it"}'
    assert read_lines("gemini_cli", [line])[0] == []


def test_a_message_that_is_cut_by_the_end_is_not_lost() -> None:
    piece = b'{"type":"message","role":"assistant","content":"Half","delta":true}'
    result = b'{"type":"result","status":"success","stats":{}}'
    events, report = read_lines("gemini_cli", [piece, result])
    assert events[0].payload == {"text": "Half"}
    assert report.text == "Half"
