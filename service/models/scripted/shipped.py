"""The scenarios that come with the provider; a credential ``sk-scripted-<name>`` or a model ``<id>@<name>`` picks one."""

from typing import Any

from service.domain.models import TokenUsage
from service.models.scripted.scenario import Action, Fault, FaultKind, FileText, Scenario, Step, ToolCall

OUTPUT = "/workspace/output"
REPORT = "name,size_bytes\n"
SUMMARY = "# Summary\n\nThe report lists the inputs — naïve, but complete ✓\n"


def success_steps() -> list[Step]:
    """List the inputs, write ``report.csv`` by shell and ``summary.md`` by the agent's own file tool."""
    return [
        Action(run="ls -la /workspace"),
        Action(run=f"mkdir -p {OUTPUT} && printf 'name,size_bytes\\n' > {OUTPUT}/report.csv && echo written"),
        Action(write=FileText(path=f"{OUTPUT}/summary.md", text=SUMMARY)),
    ]


def _status(name: str, status: int, *, retry_after: str | None = None, times: int | None = None) -> Scenario:
    fault = Fault(kind=FaultKind.STATUS, turn=None if times is None else 0, status=status, retry_after=retry_after,
                  times=times)  # fmt: skip
    return Scenario(name=name, steps=success_steps(), faults=[fault])


def _fault(name: str, kind: FaultKind, **fields: Any) -> Scenario:
    return Scenario(name=name, steps=success_steps(), faults=[Fault(kind=kind, **fields)])


def _statuses() -> list[Scenario]:
    always = [_status(f"e{status}", status) for status in (400, 401, 403, 404, 500, 503, 529)]
    return [
        *always,
        _status("e429", 429, retry_after="1"),
        _status("e429-twice", 429, retry_after="1", times=2),
        _status("e500-once", 500, times=1),
        _status("e529-once", 529, times=1),
    ]


def _faults() -> list[Scenario]:
    return [
        _fault("cut", FaultKind.CUT, turn=None),
        _fault("cut-once", FaultKind.CUT, times=1),
        _fault("reset", FaultKind.RESET, turn=None),
        _fault("reset-once", FaultKind.RESET, times=1),
        _fault("slow", FaultKind.SLOW, turn=None, seconds=0.2),
        _fault("stalled", FaultKind.STALL, turn=None),
        _fault("lingers", FaultKind.LINGER, turn=None),
        _fault("stalled-once", FaultKind.STALL, times=1),
        _fault("redirect", FaultKind.REDIRECT, turn=None),
        _fault("malformed", FaultKind.MALFORMED, turn=None),
        _fault("content-type", FaultKind.CONTENT_TYPE, turn=None),
        _fault("no-usage", FaultKind.NO_USAGE, turn=None),
        _fault("split", FaultKind.SPLIT, turn=None, size=3),
        _fault("huge-body", FaultKind.HUGE_BODY, turn=None),
        _fault("stream-error", FaultKind.STREAM_ERROR, turn=None),
        _fault("echo-key", FaultKind.ECHO_KEY, turn=None, status=200),
        _fault("echo-key-error", FaultKind.ECHO_KEY, turn=None, status=401),
    ]


def _behaviours() -> list[Scenario]:
    work = success_steps()
    return [
        Scenario(name="success", steps=work),
        Scenario(name="thinking", steps=work, thinking="First the inputs, then the report — step by step."),
        Scenario(name="parallel", steps=[[Action(run="echo one"), Action(run="echo two")], *work]),
        Scenario(name="text", final="Just a text — no tools ✓"),
        Scenario(name="empty", final=""),
        Scenario(name="refusal", final="I can't help with that.", final_stop="refusal"),
        Scenario(name="truncated", final="This answer ends befo", final_stop="length"),
        Scenario(name="endless", steps=[Action(run="echo again")], endless=True),
        Scenario(name="invalid-arguments", steps=[Action(call=ToolCall(name="Bash", arguments='{"command": ')), *work]),
        Scenario(name="unknown-tool", steps=[Action(call=ToolCall(name="no_such_tool", arguments={"x": 1})), *work]),
        Scenario(name="huge-output", steps=work, final="0123456789abcde\n" * 262_144, piece_chars=16_384),
        Scenario(name="loud", steps=[Action(run="yes 0123456789abcde | head -c 20000000"), *work]),
        Scenario(name="sleep", steps=[Action(run="sleep 3600")]),
        Scenario(name="dear", steps=work, usage=TokenUsage(input_tokens=1_000_000, output_tokens=100_000)),
    ]


SCENARIOS = {scenario.name: scenario for scenario in [*_behaviours(), *_statuses(), *_faults()]}
