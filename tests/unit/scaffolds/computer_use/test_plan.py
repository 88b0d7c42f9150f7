"""What is refused before a sandbox is made, and what the plan records."""

from dataclasses import replace
from typing import Any

import pytest

from service.domain.agents import AgentSettings, Surface
from service.domain.desktop import Size
from service.domain.errors import Invalid
from service.domain.models import Dialect
from service.scaffolds.computer_use.scaffold import ComputerUseScaffold
from service.scaffolds.computer_use.settings import ComputerSettings
from service.scaffolds.computer_use.speaking import speech_of
from service.scaffolds.contract import ModelChoice, Plan, PlanContext
from tests.unit.scaffolds.build import AGENT, CONTEXT, manifest, task

SONNET = ModelChoice("sonnet", "claude-sonnet-4-6", Dialect.ANTHROPIC)
OPEN = ModelChoice("open", "some-open-model", Dialect.OPENAI)
BROUGHT: dict[str, Any] = {
    "name": "lab.1",
    "action": "name",
    "arguments": "args",
    "actions": {"tap": {"type": "click", "take": [{"to": "point", "argument": "position"}]}},
    "tools": [{"name": "tap", "parameters": {"type": "object", "properties": {"position": {"type": "array"}}}}],
    "golden": [
        {"payload": {"name": "tap", "args": {"position": [1, 2]}}, "actions": [{"type": "click", "x": 1, "y": 2}]}
    ],
}


def context(model: ModelChoice | None = SONNET, **settings: Any) -> PlanContext:
    return replace(CONTEXT, model=model, surface=Surface.DESKTOP, settings=AgentSettings.of(settings))


def plan(given: PlanContext) -> Plan:
    return ComputerUseScaffold().plan(task(), AGENT, manifest(kind="computer_use"), given)


def test_the_plan_says_how_the_model_speaks_and_where_the_screen_is() -> None:
    made = plan(context(tools=["bash"], confirm="human"))
    chosen = {
        name: made.provenance[name] for name in ("vocabulary", "native_tool", "confirm", "history_pictures", "tools")
    }
    assert chosen == {"vocabulary": "anthropic.20251124", "native_tool": True, "confirm": "human", "history_pictures": 3, "tools": ["bash"]}  # fmt: skip
    assert made.env["DISPLAY"] == ":1"
    assert made.argv == []


@pytest.mark.parametrize(
    ("settings", "type_"),
    [({"vocabulary": "openai.computer"}, "vocabulary_not_native"), ({"vocabulary": "osworld.computer_13"}, "vocabulary_not_native"),
     ({"vocabulary": "martian.1"}, "unknown_vocabulary"), ({"vocabulary": "manifest"}, "unknown_vocabulary"),
     ({"confirm": "maybe"}, "bad_settings"), ({"history_pictures": 0}, "bad_settings"), ({"tools": "bash"}, "bad_settings"),
     ({"tools": ["teleport"]}, "unknown_tool"), ({"effort": "heroic"}, "unsupported_effort")],
)  # fmt: skip
def test_what_cannot_be_is_refused(settings: dict[str, Any], type_: str) -> None:
    with pytest.raises(Invalid) as error:
        plan(context(**settings))
    assert error.value.type == type_


@pytest.mark.parametrize("screen", [{"width": 319}, {"height": 4097}, {"depth": 8}, "1280x800"])
def test_screens_have_bounds(screen: object) -> None:
    with pytest.raises(Invalid) as error:
        AgentSettings.of({"screen": screen})
    assert error.value.type == "bad_settings"


def test_it_needs_a_model() -> None:
    with pytest.raises(Invalid) as error:
        plan(context(None))
    assert error.value.type == "model_needed"


def test_a_model_without_a_tool_of_its_own_gets_ours() -> None:
    speech = speech_of(OPEN, ComputerSettings(), None)
    (tool,) = speech.tools(Size(width=1280, height=800)).values()
    assert (speech.native, tool.spec.name, tool.alone) == (False, "computer", True)
    native = speech_of(SONNET, ComputerSettings(), None)
    assert (native.native, native.tools(Size(width=1280, height=800))) == (True, {})


def test_chat_completions_have_no_tool_of_their_own() -> None:
    model = ModelChoice("gpt", "gpt-5.5", Dialect.OPENAI)
    assert speech_of(model, ComputerSettings(), None).vocabulary.name == "openai.computer"
    assert speech_of(model, ComputerSettings(chat=True), None).native is False


def test_words_that_the_manifest_brings_become_tools() -> None:
    speech = speech_of(OPEN, ComputerSettings(), BROUGHT)
    screen = Size(width=1280, height=800)
    assert list(speech.tools(screen)) == ["tap"]
    space = speech.vocabulary.space(screen)
    (action,) = speech.vocabulary.read(speech.payload("tap", {"position": [7, 9]}), space, screen).actions
    assert (action.type, action.x, action.y) == ("click", 7, 9)
    with pytest.raises(Invalid) as error:
        speech_of(OPEN, ComputerSettings(), {**BROUGHT, "tools": []})
    assert error.value.type == "vocabulary_without_tools"
