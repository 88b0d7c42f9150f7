"""The providers' own computer tools: one script, eight vocabularies, against a provider that refuses what theirs do."""

import base64
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.domain.desktop import SafetyCheck
from service.domain.errors import Invalid
from service.domain.models import Dialect
from service.models.clients import client_for
from service.models.clients.computers.native import NATIVE, native_vocabularies
from service.models.clients.computers.responses import NO_PICTURE
from service.models.messages import (
    Answer,
    Ask,
    ComputerTool,
    Image,
    ModelRefused,
    Reach,
    ResultsTurn,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
    UserTurn,
)
from service.models.scripted.exchanges import Exchange
from service.models.scripted.scenario import Action, Computer, Scenario, Step
from service.models.scripted.server import Scripted
from tests.integration.models.pipe import piped

Payload = dict[str, Any]
BASH = ToolSpec(
    "bash", "Run it.", {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
)
PICTURE = Image(
    media_type="image/webp", data=base64.b64encode(b"RIFF\xff\xef\xbe\xfb\x10WEBP" + bytes(range(256))).decode()
)
DIALECTS = {name: dialect for dialect, names in NATIVE.items() for name in names}
CLICK: dict[str, list[Payload]] = {
    "anthropic.20241022": [{"action": "left_click"}],
    "anthropic.20250124": [{"action": "left_click", "coordinate": [3, 4]}, {"action": "screenshot"}],
    "anthropic.20251124": [{"action": "zoom", "region": [0, 0, 9, 9]}],
    "anthropic.computer_toolset_20260801": [{"action": "left_click", "coordinate": [3, 4]}, {"action": "wait", "duration": 1}],
    "openai.computer_use_preview": [{"action": {"type": "click", "button": "left", "x": 3, "y": 4}}],
    "openai.computer": [{"action": {"type": "move", "x": 3, "y": 4}}, {"actions": [{"type": "wait"}, {"type": "type", "text": "ü€"}]}],
    "gemini.3_5": [{"name": "click", "args": {"x": 500, "y": 1, "intent": "open"}}, {"name": "wait", "args": {}}],
    "gemini.legacy": [{"name": "click_at", "args": {"x": 500, "y": 1}}],
}  # fmt: skip
EXPECTED: dict[str, list[Payload]] = {
    **CLICK,
    "openai.computer": [
        {"actions": [{"type": "move", "x": 3, "y": 4}, {"type": "wait"}, {"type": "type", "text": "ü€"}]}
    ],
}
CHECK = SafetyCheck(id="sc_1", code="malicious_instructions", message="Is this all right?")
STRANGE: dict[str, list[Payload]] = {
    "anthropic.20250124": [{"action": 5, "coordinate": "here"}, {}],
    "anthropic.computer_toolset_20260801": [{"action": "fly", "how": "high"}],
    "openai.computer_use_preview": [{}, {"action": {"type": "fly", "x": "far"}}],
    "openai.computer": [{"actions": "all of them"}, {"actions": [{"type": "fly"}, 7]}, {"action": 3}],
    "gemini.3_5": [{"name": "fly", "args": {"x": {"a": 1}}}, {"name": "click"}],
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Scripted]:
    with Scripted(scenario for name in DIALECTS for scenario in _scenarios(name)) as running:
        yield running


def _scenarios(vocabulary: str) -> list[Scenario]:
    """A request to Gemini does not say which of its two vocabularies its model has: each has scripts of its own."""
    only = {vocabulary: CLICK[vocabulary]}
    steps: list[Step] = [
        Action(computer=Computer(payloads=only)),
        Action(run="echo one"),
        [Action(say="Now."), Action(computer=Computer(payloads=only, after="ok"))],
        Action(computer=Computer(payloads=only, after="error")),
    ]
    checked: list[Step] = [Action(computer=Computer(payloads=only, checks=[CHECK]))]
    strange: list[Step] = [Action(computer=Computer(payloads={vocabulary: STRANGE.get(vocabulary, [{}])}))]
    return [
        Scenario(name=_name("desk", vocabulary), steps=steps, thinking="Where is it?"),
        Scenario(name=_name("checked", vocabulary), steps=checked),
        Scenario(name=_name("strange", vocabulary), steps=strange),
    ]


def _name(scenario: str, vocabulary: str) -> str:
    return f"{scenario}-{vocabulary.replace('.', '-')}"


@pytest.fixture
async def socket(provider: Scripted, tmp_path: Path) -> AsyncIterator[Path]:
    path = tmp_path / "models.sock"
    async with piped(path, provider.port):
        yield path


class Talk:
    """A conversation as a loop has it; every answer goes through JSON, as a journal keeps it."""

    def __init__(self, socket: Path, provider: Scripted, scenario: str, vocabulary: str, **fields: Any) -> None:
        reach = Reach(str(socket), f"sk-scripted-{_name(scenario, vocabulary)}", "some-model", DIALECTS[vocabulary])
        self.client = client_for(reach)
        self.computer = ComputerTool(vocabulary, 1280, 800, **fields)
        self.turns: list[Turn] = [UserTurn(text="Do it.")]
        self._provider = provider

    async def __aenter__(self) -> "Talk":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.client.close()

    async def ask(self) -> Answer:
        answer = await self.client.ask(Ask("Be brief.", self.turns, [BASH], computer=self.computer))
        self.turns.append(Answer.model_validate_json(answer.model_dump_json()))
        return answer

    def results(self, answer: Answer, **fields: Any) -> None:
        results = [ToolResult(id=c.id, name=c.name, vocabulary=c.vocabulary, **fields) for c in answer.calls]
        self.turns.append(ResultsTurn(results=results))

    @property
    def sent(self) -> Exchange:
        return self._provider.requests()[-1]


def _arguments(calls: list[ToolCall]) -> list[Any]:
    return [call.arguments for call in calls]


@pytest.mark.parametrize("vocabulary", list(DIALECTS))
async def test_a_conversation_with_both_kinds_of_tools(socket: Path, provider: Scripted, vocabulary: str) -> None:
    async with Talk(socket, provider, "desk", vocabulary) as talk:
        first = await talk.ask()
        assert _arguments(first.calls) == EXPECTED[vocabulary]
        assert {(c.name, c.vocabulary) for c in first.calls} == {("computer", vocabulary)}
        assert first.stop == "tool_calls"
        talk.results(first, text="", images=[PICTURE])
        second = await talk.ask()
        assert [(c.name, c.vocabulary, c.arguments) for c in second.calls] == [("bash", None, {"command": "echo one"})]
        assert PICTURE.data[20:60] in talk.sent.body.decode().translate(str.maketrans("-_", "+/"))
        talk.results(second, text="one")
        third = await talk.ask()
        assert (third.text, _arguments(third.calls)) == ("Now.", EXPECTED[vocabulary])
        talk.results(third, text="out_of_bounds: the screen is 1280x800", is_error=True, images=[PICTURE, PICTURE])
        fourth = await talk.ask()
        assert _arguments(fourth.calls) == EXPECTED[vocabulary]
        assert b"out_of_bounds" in talk.sent.body
        talk.results(fourth, text="", images=[PICTURE])
        assert (await talk.ask()).stop == "end"
        assert talk.sent.turn == 4


@pytest.mark.parametrize("vocabulary", list(DIALECTS))
async def test_results_whose_pictures_were_left_out_are_still_answers(
    socket: Path, provider: Scripted, vocabulary: str
) -> None:
    async with Talk(socket, provider, "desk", vocabulary) as talk:
        talk.results(await talk.ask(), text="[the picture is no longer shown]")
        assert (await talk.ask()).calls[0].name == "bash"
        assert b"no longer shown" in talk.sent.body
        shown = NO_PICTURE.data.encode() in talk.sent.body
        assert shown is vocabulary.startswith("openai.")


@pytest.mark.parametrize(
    "vocabulary", ["openai.computer", "openai.computer_use_preview", "gemini.3_5", "gemini.legacy"]
)
async def test_what_the_provider_wants_confirmed_is_told_and_answered(
    socket: Path, provider: Scripted, vocabulary: str
) -> None:
    async with Talk(socket, provider, "checked", vocabulary) as talk:
        answer = await talk.ask()
        call = answer.calls[0]
        if vocabulary.startswith("openai."):
            assert call.checks == [CHECK]
        else:
            assert call.arguments is not None
            decision = {"decision": "require_confirmation", "explanation": CHECK.message}
            assert call.arguments["args"]["safety_decision"] == decision
        talk.results(answer, text="", images=[PICTURE])
        with pytest.raises(ModelRefused, match="acknowledged"):
            await talk.ask()
        talk.turns.pop()
        talk.results(answer, text="", images=[PICTURE])
        confirmed = talk.turns.pop()
        assert isinstance(confirmed, ResultsTurn)
        results = [confirmed.results[0].model_copy(update={"acknowledged": [CHECK]}), *confirmed.results[1:]]
        talk.turns.append(ResultsTurn(results=results))
        assert (await talk.ask()).stop == "end"


@pytest.mark.parametrize("vocabulary", list(STRANGE))
async def test_strange_payloads_arrive_as_calls(socket: Path, provider: Scripted, vocabulary: str) -> None:
    async with Talk(socket, provider, "strange", vocabulary) as talk:
        answer = await talk.ask()
        expected = [p | {"args": p.get("args", {})} if "name" in p else p for p in STRANGE[vocabulary]]
        assert [c.arguments for c in answer.calls] == expected
        assert {c.vocabulary for c in answer.calls} == {vocabulary}
        talk.results(answer, text="unknown_action", is_error=True)
        assert (await talk.ask()).stop == "end"


@pytest.mark.parametrize("vocabulary", list(DIALECTS))
async def test_what_was_said_is_given_back_unchanged(socket: Path, provider: Scripted, vocabulary: str) -> None:
    async with Talk(socket, provider, "desk", vocabulary) as talk:
        answer = await talk.ask()
        talk.results(answer, text="ok", images=[PICTURE])
        await talk.ask()
        body = talk.sent.json
        match DIALECTS[vocabulary]:
            case Dialect.ANTHROPIC:
                given = body["messages"][1]["content"]
                assert given[0] == {"type": "thinking", "thinking": "Where is it?", "signature": "c2NyaXB0ZWQ="}
                of_set = vocabulary.endswith("toolset_20260801")
                assert [(b["name"], b["input"], b.get("toolset_name")) for b in given[1:]] == [
                    (p["action"], {k: v for k, v in p.items() if k != "action"}, "computer")
                    if of_set
                    else ("computer", p, None)
                    for p in CLICK[vocabulary]
                ]
            case Dialect.OPENAI:
                given = [i for i in body["input"] if i.get("type") == "computer_call"]
                assert given == [i for i in answer.items if i["type"] == "computer_call"]
                assert given[0]["pending_safety_checks"] == []
                thoughts = [i["encrypted_content"] for i in body["input"] if i.get("type") == "reasoning"]
                assert (thoughts, body["include"]) == (["c2NyaXB0"], ["reasoning.encrypted_content"])
            case _:
                given = body["contents"][1]["parts"]
                assert given == answer.items


async def test_the_entry_says_what_the_version_takes(socket: Path, provider: Scripted) -> None:
    seen: dict[str, Any] = {}
    for vocabulary in DIALECTS:
        async with Talk(socket, provider, "desk", vocabulary, environment="browser", zoom=False) as talk:
            await talk.ask()
            body, headers = talk.sent.json, talk.sent.headers
            entry = next(t for t in body["tools"] if "computer" in json.dumps(t))
            seen[vocabulary] = (entry, headers.get("anthropic-beta"), body.get("truncation"))
    size = {"name": "computer", "display_width_px": 1280, "display_height_px": 800}
    without = {"type": "computer_toolset_20260801", "configs": {"zoom": {"enabled": False}}}
    preview = {"type": "computer_use_preview", "display_width": 1280, "display_height": 800, "environment": "browser"}
    gemini = ({"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}, None, None)
    assert seen == {
        "anthropic.20241022": ({"type": "computer_20241022", **size}, "computer-use-2024-10-22", None),
        "anthropic.20250124": ({"type": "computer_20250124", **size}, "computer-use-2025-01-24", None),
        "anthropic.20251124": ({"type": "computer_20251124", **size}, "computer-use-2025-11-24", None),
        "anthropic.computer_toolset_20260801": (without, None, None),
        "openai.computer_use_preview": (preview, None, "auto"),
        "openai.computer": ({"type": "computer"}, None, None),
        "gemini.3_5": gemini,
        "gemini.legacy": gemini,
    }


async def test_with_zoom_on_a_desktop(socket: Path, provider: Scripted) -> None:
    entries: list[Any] = []
    for vocabulary in ("anthropic.20251124", "anthropic.computer_toolset_20260801", "gemini.3_5"):
        async with Talk(socket, provider, "desk", vocabulary) as talk:
            await talk.ask()
            entries.append(next(t for t in talk.sent.json["tools"] if "computer" in json.dumps(t)))
    assert entries[0]["enable_zoom"] is True
    assert entries[1:] == [
        {"type": "computer_toolset_20260801"},
        {"computerUse": {"environment": "ENVIRONMENT_DESKTOP"}},
    ]


@pytest.mark.parametrize(
    ("dialect", "chat", "vocabulary"),
    [
        (Dialect.OPENAI, True, "openai.computer"),
        (Dialect.OPENAI, False, "anthropic.20250124"),
        (Dialect.ANTHROPIC, False, "anthropic.computer_toolset"),
        (Dialect.GEMINI, False, "gemini.4"),
    ],
)
async def test_a_vocabulary_that_the_api_has_no_tool_for(
    socket: Path, dialect: Dialect, chat: bool, vocabulary: str
) -> None:
    assert vocabulary not in native_vocabularies(dialect, chat=chat)
    client = client_for(Reach(str(socket), "sk-scripted-text", "some-model", dialect, chat=chat))
    with pytest.raises(Invalid) as caught:
        await client.ask(Ask("", [UserTurn(text="Do it.")], computer=ComputerTool(vocabulary, 1280, 800)))
    await client.close()
    assert caught.value.type == "vocabulary_not_native"
