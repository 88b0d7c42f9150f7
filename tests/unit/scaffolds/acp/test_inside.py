"""The client that ships into sandboxes, run here as it is run there, with an agent that does as it is told."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from service.domain.events import EventType
from service.scaffolds.acp import inside
from service.scaffolds.acp.parser import AcpParser
from service.scaffolds.contract import AgentReport, Translated

pytestmark = pytest.mark.longer
AGENT = Path(__file__).parent / "agent.py"
KINDS = (EventType.AGENT_USAGE, EventType.AGENT_FINAL)


@dataclass
class Said:
    code: int
    events: list[Translated]
    report: AgentReport
    heard: dict[str, Any]
    """What the agent was asked, by method."""

    def of(self, kind: str) -> list[Any]:
        return [event.payload for event in self.events if event.type == kind]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "output").mkdir()
    (tmp_path / "input.csv").write_text("40\n2\n")
    return tmp_path


def client(folder: Path, *argv: str, **job: Any) -> subprocess.Popen[bytes]:
    whole: dict[str, Any] = {
        "argv": argv, "prompt": "Add up input.csv.", "permissions": {"default": "allow", "by_kind": {}}, "mode": None,
        "model": None, "auth_method": None, "start_s": 60, "cancel_s": 30, **job,
    }  # fmt: skip
    with (folder / "job").open("w+") as file:
        json.dump(whole, file)
        file.seek(0)
        return subprocess.Popen(
            [sys.executable, "-I", "-S", inside.__file__], stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=folder, env={"PATH": os.environ["PATH"]},
        )  # fmt: skip


def ended(started: subprocess.Popen[bytes]) -> Said:
    out, err = started.communicate(timeout=100)
    parser = AcpParser()
    events = [event for line in out.splitlines() for event in parser.line("stdout", line)]
    heard = [json.loads(line) for line in err.splitlines() if line.startswith(b'{"jsonrpc"')]
    return Said(started.returncode, events, parser.report(), {m["method"]: m["params"] for m in heard if "method" in m})


def run(folder: Path, how: str, **job: Any) -> Said:
    return ended(client(folder, sys.executable, str(AGENT), how, **job))


def test_what_it_says_is_told(folder: Path) -> None:
    said = run(folder, "well")
    no = "this client offers no such thing"
    assert [(e.type, e.payload) for e in said.events if e.type not in KINDS] == [
        ("agent.thinking", {"text": "I think"}),
        ("agent.message", {"text": "I read it. ✓"}),
        ("agent.plan", {"entries": [{"content": "try fs", "priority": "low", "status": no}]}),
        ("agent.plan", {"entries": [{"content": "try terminal", "priority": "low", "status": no}]}),
        ("tool.call", {"id": "call-1", "name": "read", "title": "Read input.csv", "arguments": {"path": "input.csv"}}),
        ("tool.result", {"id": "call-1", "output": "40\n2\n", "is_error": False}),
        ("agent.permission", {"id": "call-2", "title": "Write answers.json", "kind": "edit", "decision": "allow", "option": "yes"}),
        ("tool.call", {"id": "call-2", "name": "edit", "title": "Write answers.json", "arguments": {"to": "answers"}}),
        ("tool.result", {"id": "call-2", "output": '{"chosen": {"outcome": "selected", "optionId": "yes"}}', "is_error": False}),
        ("agent.message", {"text": "Add up "}),
    ]  # fmt: skip
    assert (said.code, said.report.status, said.report.reason, said.report.text) == (
        0,
        "success",
        "end_turn",
        "Add up ",
    )
    assert said.of("agent.usage") == [
        {"input_tokens": 100, "cached_input_tokens": 20, "cache_write_tokens": 0, "output_tokens": 12, "reasoning_tokens": 3}
    ]  # fmt: skip
    assert len(said.of("agent.final")) == 1
    capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    assert said.heard["initialize"]["clientCapabilities"] == capabilities


@pytest.mark.parametrize(
    ("default", "by_kind", "decision"),
    [
        ("deny", {}, "deny"),
        ("allow", {"edit": "deny"}, "deny"),
        ("deny", {"edit": "allow"}, "allow"),
        ("allow", {"execute": "deny"}, "allow"),
    ],
)
def test_a_policy_answers_its_questions(default: str, by_kind: dict[str, str], decision: str, folder: Path) -> None:
    said = run(folder, "well", permissions={"default": default, "by_kind": by_kind})
    (asked,) = said.of("agent.permission")
    assert (asked["decision"], asked["option"]) == (decision, "yes" if decision == "allow" else "no")
    assert [result["is_error"] for result in said.of("tool.result")] == [False, decision == "deny"]
    assert (folder / "output/answers.json").exists() is (decision == "allow")


@pytest.mark.parametrize(
    ("options", "decided"),
    [
        ([("a", "allow_always"), ("o", "allow_once")], ("allow", "o")),
        ([("r", "reject_once"), ("a", "allow_always")], ("allow", "a")),
        ([("r", "reject_once")], ("cancelled", None)),
        ([("1", "allow_once"), ("2", "allow_once")], ("allow", "1")),
        ([], ("cancelled", None)),
    ],
)
def test_what_it_may_is_said_once_where_that_can_be_said(
    options: Sequence[tuple[str, str]], decided: tuple[str, str | None]
) -> None:
    offered: list[dict[str, Any]] = [{"optionId": id_, "kind": kind} for id_, kind in options]
    assert inside.decide({"default": "allow", "by_kind": {}}, "read", offered) == decided


def test_mode_and_model_are_selected_as_it_offers(folder: Path) -> None:
    said = run(folder, "well", mode="build", model="lab/m")
    assert said.heard["session/set_mode"] == {"sessionId": "s-1", "modeId": "build"}
    assert said.heard["session/set_config_option"] == {"sessionId": "s-1", "configId": "the-model", "value": "lab/m"}
    assert list(said.heard)[-1] == "session/prompt"


@pytest.mark.parametrize(
    ("how", "reason", "says"),
    [
        ("crash", "agent_ended", "exit code -11"),
        ("rubbish", "garbage", "are no messages"),
        ("long", "line_too_long", "bytes"),
        ("version", "protocol_version", "speaks version 7"),
        ("mute", "no_answer", "initialize was not answered in 1 s"),
        ("sign-in", "auth_required", 'Sign in first: {"why": "so"}'),
        ("no-mode", "mode_refused", "no such mode"),
        ("error", "prompt_failed", "Internal error"),
        ("silent", "empty_turn", ""),
        ("refusal", "refusal", "Add up "),
        ("max_tokens", "max_tokens", "Add up "),
    ],
)
def test_what_goes_wrong_has_a_reason(how: str, reason: str, says: str, folder: Path) -> None:
    said = run(folder, how, mode="plan", start_s=1 if how == "mute" else 60)
    assert (said.code, said.report.status, said.report.reason) == (int(how != "silent"), "error", reason)
    assert says in said.report.text


def test_a_limit_of_its_own_is_an_orderly_end(folder: Path) -> None:
    said = run(folder, "max_turn_requests")
    assert (said.code, said.report.status) == (0, "limit")


def test_a_command_that_is_not_there_is_said(folder: Path) -> None:
    said = ended(client(folder, "/no/agent"))
    assert (said.code, said.report.reason) == (1, "not_started")


@pytest.mark.parametrize(("how", "reason"), [("endless", "cancelled"), ("polite", "cancelled"), ("deaf", "stopped")])
def test_a_signal_is_a_cancel_first(how: str, reason: str, folder: Path) -> None:
    started = client(folder, sys.executable, str(AGENT), how, cancel_s=0.5 if how == "deaf" else 30)
    assert started.stdout is not None
    seen = b""
    while b"call-1" not in seen:
        line = started.stdout.readline()
        assert line, seen
        seen = line
    started.send_signal(signal.SIGINT)
    said = ended(started)
    assert (said.code, said.report.status, said.report.reason) == (1, "error", reason)
