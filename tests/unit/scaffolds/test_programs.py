"""What holds for every adapter of a real program: refusals, secrets, hostile lines, the rule of completion."""

import hashlib
import json
from typing import Any

import pytest

from service.domain.agents import Driver
from service.domain.errors import Invalid
from service.domain.models import Dialect
from service.scaffolds import programs
from service.scaffolds.contract import AgentReport
from service.scaffolds.registry import scaffold_for
from tests.unit.scaffolds.programs import RECORDED, completed, context, model, plan, program, read, read_lines

DIALECTS = {"claude_code": Dialect.ANTHROPIC, "codex": Dialect.OPENAI, "gemini_cli": Dialect.GEMINI}
KINDS = sorted(DIALECTS)
_HOSTILE = [
    b"",
    b"not json",
    b"{",
    b"[1]",
    b'{"type": 7}',
    b'{"type": "result", "usage": {"input_tokens": 1e999}}',
    b'{"type": "result", "usage": [1], "stats": "x", "error": 3}',
    b'{"type": "result", "is_error": "false", "subtype": ["success"]}',
    b'{"type": "assistant", "message": {"content": "text"}}',
    b'{"type": "assistant", "message": {"content": [{"type": "text", "text": {"a": 1}}, 3, null]}}',
    b'{"type": "user", "message": {"content": [{"type": "tool_result", "content": 5}]}}',
    b'{"type": "item.completed", "item": 5}',
    b'{"type": "item.completed", "item": {"type": "command_execution", "exit_code": "x"}}',
    b'{"type": "turn.completed", "usage": {"input_tokens": -5, "output_tokens": true}}',
    b'{"type": "message", "role": "assistant", "content": ["x"]}',
    b'{"type": "tool_result", "error": "x"}',
    b'{"type": "unknown"}',
    b'{"a":' * 50 + b"1" + b"}" * 50,
    b"\xff\xfe{}",
]


def refused(kind: str, dialect: Dialect | None = None, **settings: Any) -> str:
    with pytest.raises(Invalid) as error:
        plan(kind, context(None if dialect is None else model(dialect), **settings))
    return error.value.type


@pytest.mark.parametrize("kind", KINDS)
class TestEveryProgram:
    def test_runs_inside(self, kind: str) -> None:
        assert scaffold_for(kind).driver is Driver.KIT

    def test_needs_a_kit_and_takes_no_command(self, kind: str) -> None:
        scaffold_for(kind).check(program(kind))
        for fields, type_ in [({"kit": None}, "kit_missing"), ({"argv": ["x"]}, "not_for_this_kind")]:
            with pytest.raises(Invalid) as error:
                scaffold_for(kind).check(program(kind, **fields))
            assert error.value.type == type_

    def test_own_names_are_refused_in_the_environment(self, kind: str) -> None:
        with pytest.raises(Invalid, match="WORKSTEAD_"):
            scaffold_for(kind).check(program(kind, env={"WORKSTEAD_X": "1"}))

    def test_needs_a_model_that_speaks_its_dialect(self, kind: str) -> None:
        other = next(d for d in DIALECTS.values() if d is not DIALECTS[kind])
        assert refused(kind) == "model_missing"
        assert refused(kind, other) == "dialect_unsupported"

    def test_settings_that_it_would_not_follow_are_refused(self, kind: str) -> None:
        if kind != "gemini_cli":
            assert refused(kind, DIALECTS[kind], temperature=0.5) == "unsupported_setting"
        assert refused(kind, DIALECTS[kind], max_turn=3) == "unsupported_setting"
        assert refused(kind, DIALECTS[kind], effort="enormous") == "unsupported_effort"
        assert refused(kind, DIALECTS[kind], prompt="none") == "unknown_template"

    def test_the_prompt_comes_by_standard_input_whatever_it_is(self, kind: str) -> None:
        long = "--help\n" + "é" * 190_000
        made = plan(kind, context(model(DIALECTS[kind])), instruction=long)
        assert made.stdin == long.encode()
        assert not any(long[:20] in part for part in made.argv)

    def test_provenance_says_prompt_template_and_effort(self, kind: str) -> None:
        made = plan(kind, context(model(DIALECTS[kind])), instruction="Do it").provenance
        assert made["template_name"] == "plain@1"
        assert made["prompt"] == hashlib.sha256(b"Do it").hexdigest()
        assert (made["effort"], made["effort_asked"]) == (None, "default")

    def test_the_token_is_in_its_variable_only(self, kind: str) -> None:
        made = plan(kind, context(model(DIALECTS[kind])))
        assert len(made.token_variables) == 1
        assert not set(made.token_variables) & set(made.env)

    def test_the_manifest_may_change_environment_ladder_and_hang_rule(self, kind: str) -> None:
        changes = {"env": {"X": "1", "LANG": "C"}, "stop": [{"signal": "HUP", "wait_s": 1}], "hang_s": 7}
        made = plan(kind, context(model(DIALECTS[kind])), manifest=changes)
        assert (made.env["X"], made.env["LANG"]) == ("1", "C")
        assert ([step.signal for step in made.stop], made.hang_s) == (["HUP"], 7)
        usual = plan(kind, context(model(DIALECTS[kind])))
        assert usual.hang_s == programs.HANG_S
        assert usual.stop[-1].signal == "TERM"

    def test_hostile_lines_raise_nothing_and_end_nothing_well(self, kind: str) -> None:
        events, report = read_lines(kind, _HOSTILE)
        json.dumps([dict(event.payload) for event in events], allow_nan=False)
        assert report.status != "success" or kind == "codex"

    def test_standard_error_is_never_read(self, kind: str) -> None:
        lines = (RECORDED / kind / "success.jsonl").read_bytes().split(b"\n")
        assert read_lines(kind, lines, "stderr") == ([], AgentReport())

    def test_a_second_reader_finds_the_same(self, kind: str) -> None:
        assert read(kind, "success") == read(kind, "success")

    def test_an_exit_code_alone_says_nothing(self, kind: str) -> None:
        report = read(kind, "success")[1]
        assert completed(kind, 0, report)
        assert not completed(kind, 0, AgentReport())
        assert not completed(kind, 0, None)
        assert not completed(kind, 1, report), "a code of failure denies what the lines say"
        assert not completed(kind, None, report, signal=15)

    @pytest.mark.parametrize("case", ["unauthorized", "bad_request"])
    def test_an_error_of_the_provider_is_no_success_whatever_the_exit_code(self, kind: str, case: str) -> None:
        events, report = read(kind, case)
        assert report.status == "error"
        assert events[-1].type == "agent.final"
        assert "scripted fault" in report.text
        assert not completed(kind, 0, report)


@pytest.mark.parametrize("kind", ["claude_code", "gemini_cli"])
def test_the_limit_of_turns_is_an_orderly_ending(kind: str) -> None:
    report = read(kind, "max_turns")[1]
    assert (report.status, report.reason) == ("limit", "max_turns")
    assert completed(kind, 1, report)
    assert not completed(kind, None, report, signal=9)


def test_a_program_without_a_limit_of_turns_names_the_budget() -> None:
    with pytest.raises(Invalid, match=r"budget\.max_requests"):
        plan("codex", context(model(Dialect.OPENAI), max_turns=3))


@pytest.mark.parametrize("kind", ["claude_code", "codex"])
def test_a_system_prompt_that_no_argument_holds_is_refused(kind: str) -> None:
    assert refused(kind, DIALECTS[kind], system_prompt="€" * 90_000) == "argument_too_long"


def test_a_nul_in_a_setting_is_refused() -> None:
    with pytest.raises(Invalid, match="NUL"):
        plan("claude_code", context(model(Dialect.ANTHROPIC), system_prompt="a\0b"))
