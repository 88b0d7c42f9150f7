"""Manifest to command, and what the parser makes of lines that a good agent would not write."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from service.domain.agents import AgentSettings, ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.models import Dialect
from service.scaffolds import registry
from service.scaffolds.acp.parser import MOST_TEXT, AcpParser
from service.scaffolds.acp.scaffold import AcpScaffold
from tests.unit.scaffolds.build import AGENT, CONTEXT, manifest, ref, task
from tests.unit.scaffolds.programs import model

SPEAKER: dict[str, Any] = {
    "kind": "acp", "argv": ["/opt/kit/bin/speaker", "--model", "{model}"], "env": {"KEY": "{run_token}", "URL": "{gateway.openai}"},
    "dialect": "openai", "acp": {"model": "gw/{model}", "mode": "build", "permission_by_kind": {"delete": "deny"}},
}  # fmt: skip


def planned(settings: dict[str, Any] | None = None, **fields: Any) -> Any:
    where = replace(CONTEXT, model=model(Dialect.OPENAI), settings=AgentSettings.of(settings or {}))
    return AcpScaffold().plan(task(), AGENT, manifest(**SPEAKER | fields), where)


def test_the_client_gets_the_command_and_the_command_the_token() -> None:
    plan = planned(files=[ref("extra.json")])
    job = json.loads(plan.stdin)
    assert job["argv"] == ["/opt/kit/bin/speaker", "--model", "m-1"]
    assert (job["prompt"], job["model"], job["mode"]) == ("Do {deadline_unix} it", "gw/m-1", "build")
    assert job["permissions"] == {"default": "allow", "by_kind": {"delete": "deny"}}
    assert (plan.token_variables, plan.env["URL"]) == (["KEY"], "http://127.0.0.1/v1")
    (client,) = plan.written
    assert plan.argv[-1] == client.path == ".home/.workstead/acp_client.py"
    assert [file.path for file in plan.files] == [".home/kit/extra.json"]
    assert [step.signal for step in plan.stop] == ["INT", "TERM"]
    assert plan.stop[0].wait_s > job["cancel_s"]
    assert plan.hang_s


def test_the_agents_mode_goes_before_the_manifests() -> None:
    plan = planned({"mode": "plan"})
    assert json.loads(plan.stdin)["mode"] == plan.provenance["acp_mode"] == "plan"


@pytest.mark.parametrize(
    "settings",
    [
        {"system_prompt": "Be brief."}, {"max_output_tokens": 5}, {"effort": "high"}, {"temperature": 0.5},
        {"max_turns": 3}, {"mode": 7}, {"colour": "red"},
    ],
)  # fmt: skip
def test_what_nobody_would_follow_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as caught:
        planned(settings)
    assert caught.value.type == "unsupported_setting"


def test_what_the_command_names_it_is_told() -> None:
    argv = ["speaker", "{effort}", "{temperature}", "{max_turns}"]
    plan = planned({"effort": "max", "temperature": 0.5, "max_turns": 3}, argv=argv)
    assert json.loads(plan.stdin)["argv"] == ["speaker", "high", "0.5", "3"]


@pytest.mark.parametrize(
    ("fields", "type"),
    [
        ({"argv": []}, "argv_missing"),
        ({"argv": ["{nope}"]}, "unknown_template_variable"),
        ({"acp": {"model": "{nope}"}}, "unknown_template_variable"),
        ({"prompt": "stdin"}, "not_for_this_kind"),
        ({"parser": "jsonl"}, "not_for_this_kind"),
    ],
)
def test_a_manifest_that_could_not_be_planned_is_refused(fields: dict[str, Any], type: str) -> None:
    with pytest.raises(Invalid) as caught:
        registry.check(manifest(**SPEAKER | fields))
    assert caught.value.type == type


def test_options_are_for_this_kind_only_and_part_of_the_digest() -> None:
    with pytest.raises(ValidationError, match="takes no acp"):
        manifest(argv=["x"], acp={})
    plain = ScaffoldManifest.model_validate({"name": "x", "version": "1", "kind": "acp", "argv": ["x"]})
    assert plain.digest() != plain.model_copy(update={"acp": manifest(**SPEAKER).acp}).digest()


def line(update: Any) -> bytes:
    return json.dumps({"acp": "agent", "message": {"method": "session/update", "params": {"update": update}}}).encode()


def chunk(text: Any) -> bytes:
    return line({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


def test_a_message_without_an_end_is_cut_into_several() -> None:
    parser, piece = AcpParser(), "x" * 1000
    events = [event for _ in range(200) for event in parser.line("stdout", chunk(piece))]
    events += parser.line("stdout", b'{"acp": "end", "reason": "end_turn"}')
    texts = [event.payload["text"] for event in events if event.type == "agent.message"]
    assert "".join(texts) == piece * 200
    assert all(len(text) <= MOST_TEXT + 1000 for text in texts)


@pytest.mark.parametrize(
    "update",
    [
        None, [], {"sessionUpdate": 5}, {"sessionUpdate": "tool_call"}, {"sessionUpdate": "agent_message_chunk"},
        {"sessionUpdate": "tool_call", "toolCallId": {"a": 1}, "status": []}, {"sessionUpdate": "of_the_future", "x": 1},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "…"}},
    ],
)  # fmt: skip
def test_what_it_does_not_know_stays_raw(update: Any) -> None:
    parser = AcpParser()
    assert not parser.line("stdout", line(update))
    assert not parser.line("stdout", b'{"acp": ["agent"]}')
    assert not parser.line("stderr", chunk("no"))
    assert parser.report().status is None


def test_a_plan_of_nonsense_has_no_entries() -> None:
    (event,) = AcpParser().line("stdout", line({"sessionUpdate": "plan", "entries": [7, "x"]}))
    assert event.payload == {"entries": []}
