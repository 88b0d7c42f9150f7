"""The turn is decided by what the request carries, and the call by what the agent offers."""

import json
from typing import Any

import pytest

from service.models.scripted.conversation import Reply
from service.models.scripted.dialects import chat as chat_wire
from service.models.scripted.dialects import generate as gemini_wire
from service.models.scripted.dialects import messages as messages_wire
from service.models.scripted.dialects import responses as responses_wire
from service.models.scripted.scenario import Action, FileText, Scenario, ToolCall
from service.models.scripted.script import reply
from service.models.scripted.shipped import SCENARIOS
from tests.unit.models.scripted.requests import BASH, chat, gemini, messages, responses

_SUCCESS = SCENARIOS["success"]
_EXEC: dict[str, Any] = {
    "type": "function",
    "name": "exec_command",
    "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}},
}
_PATCH: dict[str, Any] = {"type": "custom", "name": "apply_patch"}


def _claude(scenario: Scenario = _SUCCESS, calls: int = 0, **more: Any) -> Reply:
    return reply(scenario, messages_wire.read(messages([f"t{n}" for n in range(calls)], **more)))


def test_success_lists_then_runs_then_writes_then_says_so() -> None:
    made = [_claude(calls=n) for n in range(4)]
    assert [[use.name for use in each.uses] for each in made] == [["Bash"], ["Bash"], ["Write"], []]
    assert made[3].text == _SUCCESS.final
    assert [each.turn for each in made] == [0, 1, 2, 3]


def test_required_parameters_are_filled_from_the_offered_schema() -> None:
    arguments = _claude().uses[0].arguments
    assert isinstance(arguments, dict)
    assert arguments == {"command": "ls -la /workspace", "description": "scripted"}


def test_usage_differs_from_turn_to_turn() -> None:
    assert len({_claude(calls=n).usage.model_dump_json() for n in range(4)}) == 4


def test_a_step_of_several_calls_is_over_when_all_have_results() -> None:
    parallel = SCENARIOS["parallel"]
    assert len(_claude(parallel).uses) == 2
    assert _claude(parallel, calls=2).turn == 1
    assert _claude(parallel, calls=4).turn == 3
    assert _claude(parallel, calls=4).uses[0].name == "Write"


def test_ids_of_calls_tell_the_turn_where_old_results_were_dropped() -> None:
    third = _claude(calls=2).uses[0].id
    only_the_last = reply(_SUCCESS, messages_wire.read(messages([third])))
    assert only_the_last.turn == 3


def test_without_tools_it_only_talks() -> None:
    assert (_claude(tools=False).text, list(_claude(tools=False).uses)) == (_SUCCESS.final, [])


def test_a_warm_up_is_answered_with_text() -> None:
    assert (_claude(user="Warmup").text, list(_claude(user="Warmup").uses)) == ("Ready.", [])


def test_endless_never_ends() -> None:
    assert _claude(SCENARIOS["endless"], calls=500).uses[0].name == "Bash"


def test_answers_without_tools_continue_where_the_last_stopped() -> None:
    scenario = Scenario(name="long", answers=["one ", "two"])
    first = reply(scenario, chat_wire.read(chat()))
    body = chat()
    body["messages"].append({"role": "assistant", "content": "one "})
    second = reply(scenario, chat_wire.read(body))
    assert [(first.text, first.stop), (second.text, second.stop)] == [("one ", "length"), ("two", "end")]


def test_a_wanted_schema_is_followed() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "required": ["grade"],
        "properties": {"grade": {"enum": ["good", "bad"]}},
    }
    body = chat(response_format={"type": "json_schema", "json_schema": {"schema": schema}})
    assert json.loads(reply(_SUCCESS, chat_wire.read(body)).text) == {"grade": "good"}


def test_mini_swe_agent_ends_by_its_command() -> None:
    body = chat(["a", "b", "c"], tools={"bash": BASH}, user="… echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT …")
    arguments = reply(_SUCCESS, chat_wire.read(body)).uses[0].arguments
    assert isinstance(arguments, dict)
    assert arguments["command"] == "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def test_openhands_ends_by_its_finish_tool_and_writes_by_its_editor() -> None:
    editor: dict[str, Any] = {
        "type": "object", "required": ["command", "path"],
        "properties": {"command": {"enum": ["view", "create"]}, "path": {}, "file_text": {"type": "string"}},
    }  # fmt: skip
    tools: dict[str, Any] = {"terminal": BASH, "file_editor": editor, "finish": {"properties": {"message": {}}}}
    wrote = reply(_SUCCESS, chat_wire.read(chat(["a", "b"], tools=tools))).uses[0]
    ended = reply(_SUCCESS, chat_wire.read(chat(["a", "b", "c"], tools=tools))).uses[0]
    assert isinstance(wrote.arguments, dict)
    assert (wrote.name, wrote.arguments["command"]) == ("file_editor", "create")
    assert (ended.name, ended.arguments) == ("finish", {"message": _SUCCESS.final})


def test_codex_runs_functions_and_patches_with_its_custom_tool() -> None:
    tools = [_EXEC, _PATCH]
    made = [reply(_SUCCESS, responses_wire.read(responses(["x"] * n, tools=tools))).uses[0] for n in (0, 2)]
    assert (made[0].name, made[0].arguments) == ("exec_command", {"cmd": "ls -la /workspace"})
    assert made[1].custom
    assert str(made[1].arguments).startswith(
        "*** Begin Patch\n*** Add File: /workspace/output/summary.md\n+# Summary\n+\n+"
    )


def test_codex_in_code_mode_gets_javascript() -> None:
    body = responses(tools=[{"type": "custom", "name": "exec"}], late=True)
    used = reply(_SUCCESS, responses_wire.read(body)).uses[0]
    assert (used.name, used.custom) == ("exec", True)
    assert 'tools.exec_command({"cmd": "ls -la /workspace"})' in str(used.arguments)


def test_a_shell_that_takes_a_list_gets_one() -> None:
    shell: dict[str, Any] = {"type": "object", "properties": {"command": {"type": "array"}}}
    used = reply(
        _SUCCESS, responses_wire.read(responses(tools=[{"type": "function", "name": "shell", "parameters": shell}]))
    )
    assert used.uses[0].arguments == {"command": ["bash", "-lc", "ls -la /workspace"]}


def test_gemini_counts_results_that_have_no_ids() -> None:
    assert [reply(_SUCCESS, gemini_wire.read(gemini(n))).turn for n in range(4)] == [0, 1, 2, 3]


def test_a_file_goes_by_shell_where_there_is_no_file_tool() -> None:
    scenario = Scenario(name="w", steps=[Action(write=FileText(path="/w/it's", text="a'b"))])
    arguments = reply(scenario, chat_wire.read(chat(tools={"bash": BASH}))).uses[0].arguments
    assert isinstance(arguments, dict)
    assert arguments["command"] == """printf %s 'a'"'"'b' > '/w/it'"'"'s'"""


def test_unknown_tools_and_bad_arguments_go_out_as_they_are() -> None:
    assert _claude(SCENARIOS["unknown-tool"]).uses[0].name == "no_such_tool"
    assert _claude(SCENARIOS["invalid-arguments"]).uses[0].arguments == '{"command": '


@pytest.mark.parametrize("wrong", [{}, {"run": "a", "say": "b"}])
def test_an_action_is_exactly_one_thing(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Action(**wrong)


def test_a_step_may_talk_and_call() -> None:
    scenario = Scenario(
        name="s", steps=[[Action(say="Now"), Action(call=ToolCall(name="Bash", arguments={"command": "x"}))]]
    )
    made = _claude(scenario)
    assert (made.text, len(made.uses)) == ("Now", 1)
    assert _claude(scenario, calls=1).text == scenario.final
