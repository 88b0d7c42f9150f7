"""A manifest's mapping: text, JSON lines, one object at the end; what it does not know stays raw (NEEDS C3)."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from service.domain.agents import ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.models import TokenUsage
from service.domain.run_states import ExitReport
from service.scaffolds.command.mapped import MappedReader
from service.scaffolds.command.scaffold import CommandScaffold
from service.scaffolds.contract import AgentReport, Translated

JSONL: list[dict[str, Any]] = [
    {
        "when": [{"path": "$.type", "equals": "assistant"}],
        "each": "$.content",
        "emit": "agent.message",
        "fields": {"text": "$.text"},
    },
    {
        "when": [{"path": "$.type", "equals": "call"}],
        "emit": "tool.call",
        "fields": {"id": "$.id", "name": "$.tool['name']", "arguments": "$.input"},
    },
    {
        "when": [{"path": "$.type", "one_of": ["end", "stop"]}, {"path": "$.error", "absent": True}],
        "emit": "agent.final",
        "fields": {"status": "success", "text": "$.said", "reason": "$$5 spent"},
    },
    {
        "when": [{"path": "$.usage"}],
        "emit": "agent.usage",
        "fields": {"input_tokens": "$.usage.in", "output_tokens": "$.usage.out", "cost_usd": "$.usage.usd"},
    },
]
JSONL[0]["when"] = [{"path": "$.text"}]


def manifest(**fields: Any) -> ScaffoldManifest:
    body = {"name": "x", "version": "1", "argv": ["x"], "parser": "jsonl", "mapping": JSONL, **fields}
    return ScaffoldManifest.model_validate(body)


def read(m: ScaffoldManifest, *lines: Any, stream: str = "stdout") -> tuple[list[Translated], AgentReport]:
    CommandScaffold().check(m)
    reader = MappedReader(m)
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return [event for line in raw for event in reader.line(stream, line)], reader.report()


def test_json_lines() -> None:
    events, report = read(
        manifest(),
        {"type": "assistant", "content": [{"text": "one"}, {"image": 1}, {"text": "two"}, "three"]},
        {"type": "call", "id": 7, "tool": {"name": "bash"}, "input": {"cmd": "ls"}},
        {"type": "other"},
        b"no json",
        {"type": "end", "said": "done", "usage": {"in": 5, "out": 2, "usd": 0.25}},
        {"usage": {"in": 1, "usd": 0.5}},
    )
    assert [(e.type, dict(e.payload)) for e in events[:4]] == [
        ("agent.message", {"text": "one"}),
        ("agent.message", {"text": "two"}),
        ("tool.call", {"id": "7", "name": "bash", "arguments": {"cmd": "ls"}}),
        ("agent.final", {"status": "success", "text": "done", "reason": "$5 spent"}),
    ]
    assert report.status == "success"
    assert report.text == "done"
    assert report.usage == TokenUsage(input_tokens=6, output_tokens=2)
    assert report.cost_usd == Decimal("0.75")


def test_an_error_takes_the_ending_away() -> None:
    events, report = read(manifest(), {"type": "end", "error": "x"})
    assert events == []
    assert report.status is None


def test_text_lines() -> None:
    rule = {
        "when": [{"path": "$.line", "starts_with": "AGENT: "}],
        "emit": "agent.message",
        "fields": {"text": "$.line"},
    }
    m = manifest(parser="text", mapping=[rule])
    events, _ = read(m, b"AGENT: hi", b"noise", b"AGENT: \xff")
    assert [e.payload["text"] for e in events] == ["AGENT: hi", "AGENT: \N{REPLACEMENT CHARACTER}"]
    assert read(m, b"AGENT: hi", stream="stderr")[0] == []


def test_one_object_at_the_end_over_many_lines() -> None:
    rule = {
        "when": [{"path": "$.ok", "equals": True}], "emit": "agent.final",
        "fields": {"status": "success", "text": "$.payloads[0].text"},
    }  # fmt: skip
    body = json.dumps({"ok": True, "payloads": [{"text": "all\ndone"}], "nested": {"a": {}}}, indent=2).encode()
    events, report = read(manifest(parser="json", mapping=[rule]), b"Starting", *body.splitlines(), b"bye")
    assert [e.type for e in events] == ["agent.final"]
    assert report.text == "all\ndone"


def test_true_is_not_one() -> None:
    rule = {"when": [{"path": "$.n", "equals": 1}], "emit": "agent.message", "fields": {"text": "t"}}
    m = manifest(mapping=[rule])
    assert len(read(m, {"n": 1}, {"n": 1.0}, {"n": True}, {"n": "1"})[0]) == 2


@pytest.mark.parametrize("path", ["$.a[?@.b>1]", "$.a[", "$.a[?match(@.b, '(a+)+')]", "$["])
def test_paths_with_filters_or_mistakes_are_refused(path: str) -> None:
    for rule in (
        {"when": [{"path": path}], "emit": "agent.message"},
        {"when": [{"path": "$"}], "emit": "agent.message", "fields": {"text": path}},
        {"when": [{"path": "$"}], "each": path, "emit": "agent.message"},
    ):
        with pytest.raises(Invalid) as caught:
            CommandScaffold().check(manifest(mapping=[rule]))
        assert caught.value.type == "bad_json_path"


def test_other_events_cannot_be_made() -> None:
    for emit in ("verdict", "run.phase", "model.request", "deliverable.sealed"):
        with pytest.raises(ValidationError):
            manifest(mapping=[{"when": [{"path": "$"}], "emit": emit}])


@given(st.lists(st.one_of(st.binary(max_size=60), st.dictionaries(st.sampled_from(["type", "usage", "content", "text"]), st.recursive(
    st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5)).map(lambda d: json.dumps(d).encode())), max_size=5))  # fmt: skip
def test_no_line_is_too_odd(lines: list[bytes]) -> None:
    for parser in ("text", "jsonl", "json"):
        read(manifest(parser=parser), *lines)


@pytest.mark.parametrize(
    ("code", "status", "completed"),
    [
        (0, "success", True),
        (0, "error", False),
        (5, "success", True),
        (5, None, False),
        (0, None, True),
        (9, None, False),
    ],
)
def test_rules_of_the_ending_come_first(code: int, status: Any, completed: bool) -> None:
    rules = [
        {"final_status": ["error"], "completed": False},
        {"exit_codes": [5], "final_status": ["success", "limit"], "completed": True},
        {"exit_codes": [5], "completed": False},
    ]
    m = manifest(outcome={"rules": rules})
    report = None if status is None else AgentReport(status)
    assert CommandScaffold().completed(ExitReport(code, None, 1.0, None), m, report) is completed
    assert not CommandScaffold().completed(ExitReport(None, 9, 1.0, None), m, report)


def test_an_old_manifest_keeps_its_digest() -> None:
    old = ScaffoldManifest(name="x", version="1", argv=["x"])
    assert old.digest() == "fb5ac522e8bf4d5a31f36e8ffe5b89446a132dc1774bc676a083f0a22c68b284"
