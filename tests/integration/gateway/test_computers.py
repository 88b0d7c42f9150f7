"""Runs with a screen through the gateway: their tools pass, their pictures fit, their recordings answer other pixels."""

import base64
import os
from pathlib import Path

import pytest

from service.domain.grants import Grant
from service.domain.models import Dialect
from service.gateway.cassettes.projection import canonical
from service.models.clients import client_for
from service.models.clients.computers.native import NATIVE
from service.models.messages import (
    Answer,
    Ask,
    ComputerTool,
    Image,
    ModelRefused,
    Reach,
    ResultsTurn,
    ToolResult,
    ToolSpec,
    Turn,
    UserTurn,
)
from service.models.scripted.scenario import Action, Computer, Scenario, ToolCall
from service.store import attempts, events
from tests.integration.gateway.bench import TOKEN, GateBench
from tests.integration.models.pipe import piped

pytestmark = pytest.mark.asyncio(loop_scope="module")
PAYLOADS = {
    "anthropic.20251124": [{"action": "left_click", "coordinate": [3, 4]}],
    "anthropic.computer_toolset_20260801": [{"action": "left_click", "coordinate": [3, 4]}],
    "openai.computer_use_preview": [{"action": {"type": "click", "button": "left", "x": 3, "y": 4}}],
    "openai.computer": [{"actions": [{"type": "wait"}]}],
    "gemini.3_5": [{"name": "click", "args": {"x": 3, "y": 4}}],
}
DIALECTS = {name: dialect for dialect, names in NATIVE.items() for name in names}


def picture(size: int = 20_000) -> Image:
    """Return what no other picture is equal to."""
    return Image(media_type="image/png", data=base64.b64encode(b"\x89PNG\r\n\x1a\n" + os.urandom(size)).decode())


async def converse(
    bench: GateBench, grant: Grant, vocabulary: str, socket: Path, pictures: int = 1, size: int = 20_000
) -> list[Answer]:
    client = await bench.client(grant)
    dialect = DIALECTS[vocabulary]
    turns: list[Turn] = [UserTurn(text="Do it.", images=[picture()])]
    answers: list[Answer] = []
    async with piped(socket, client.base_url.port or 0):
        model = client_for(Reach(str(socket), TOKEN, f"{dialect}-1", dialect))
        try:
            while not answers or answers[-1].calls:
                answers.append(await model.ask(Ask("", turns, computer=ComputerTool(vocabulary, 1280, 800))))
                images = [picture(size) for _ in range(pictures)]
                results = [
                    ToolResult(id=c.id, name=c.name, text="", images=images, vocabulary=vocabulary)
                    for c in answers[-1].calls
                ]
                turns += [answers[-1], ResultsTurn(results=results)]
        finally:
            await model.close()
    return answers


def scenario(bench: GateBench, vocabulary: str) -> str:
    name = vocabulary.replace(".", "-")
    steps = [Action(computer=Computer(payloads={vocabulary: PAYLOADS[vocabulary]})) for _ in range(2)]
    bench.provider.add(Scenario(name=name, steps=[*steps]))
    return name


@pytest.mark.parametrize("vocabulary", list(PAYLOADS))
async def test_a_recording_answers_a_run_that_sees_other_pixels(
    bench: GateBench, tmp_path: Path, vocabulary: str
) -> None:
    bench.begin(scenario(bench, vocabulary))
    recorded = await bench.grant()
    before = await converse(bench, recorded, vocabulary, tmp_path / "a.sock")
    assert [one.stop for one in before] == ["tool_calls", "tool_calls", "end"]
    assert [exchange.status for exchange in bench.asked()] == [200, 200, 200]
    rows = await bench.ledger_of(recorded)
    assert all(row.usage_known and row.input_tokens for row in rows)
    assert {event["type"] for event in await bench.events_of(recorded)} == {"model.request"}  # no tool was taken out
    again = await bench.grant(replay_of=recorded.run_id)
    bench.begin("unreachable")
    assert await converse(bench, again, vocabulary, tmp_path / "b.sock") == before
    assert not bench.asked()
    await bench.ledger.flush()
    async with bench.db.reading() as tx:
        stories = [canonical(await events.read(tx, grant.run_id, 0, 1000)) for grant in (recorded, again)]
    assert stories[0] == stories[1]


async def test_a_recording_does_not_answer_where_a_picture_is_missing(bench: GateBench, tmp_path: Path) -> None:
    bench.begin(scenario(bench, "gemini.3_5"))
    recorded = await bench.grant()
    await converse(bench, recorded, "gemini.3_5", tmp_path / "a.sock")
    await bench.ledger.flush()
    again = await bench.grant(replay_of=recorded.run_id)
    with pytest.raises(ModelRefused) as caught:
        await converse(bench, again, "gemini.3_5", tmp_path / "b.sock", pictures=0)
    assert caught.value.type == "not_recorded"


TAP = ToolSpec("tap", "Tap there.", {"type": "object", "properties": {}})


async def tap(bench: GateBench, grant: Grant, socket: Path) -> list[str]:
    """Have a conversation about a screen by Chat Completions; return how its answers ended."""
    client = await bench.client(grant)
    turns: list[Turn] = [UserTurn(text="Do it.", images=[picture()])]
    stops: list[str] = []
    async with piped(socket, client.base_url.port or 0):
        model = client_for(Reach(str(socket), TOKEN, "openai-1", Dialect.OPENAI, chat=True))
        try:
            for _ in range(2):
                answer = await model.ask(Ask("", turns, [TAP]))
                stops.append(answer.stop)
                results = [ToolResult(id=c.id, name=c.name, text="", images=[picture()]) for c in answer.calls]
                turns += [answer, ResultsTurn(results=results)]
        finally:
            await model.close()
    return stops


@pytest.mark.parametrize("surface", ["desktop", "browser", "shell"])
async def test_a_run_with_a_screen_is_one_whatever_its_tools_are(
    bench: GateBench, tmp_path: Path, surface: str
) -> None:
    bench.provider.add(Scenario(name="taps", steps=[Action(call=ToolCall(name="tap"))]))
    bench.begin("taps")
    recorded = await bench.grant()
    async with bench.db.transaction() as tx:
        attempt = await attempts.get(tx, recorded.run_id, recorded.attempt)
        assert attempt is not None
        await attempts.update(tx, attempt, provenance={"surface": surface})
    assert await tap(bench, recorded, tmp_path / "a.sock") == ["tool_calls", "end"]
    await bench.ledger.flush()
    again = await bench.grant(replay_of=recorded.run_id)
    if surface == "shell":
        with pytest.raises(ModelRefused) as caught:
            await tap(bench, again, tmp_path / "b.sock")
        assert caught.value.type == "not_recorded"
    else:
        assert await tap(bench, again, tmp_path / "b.sock") == ["tool_calls", "end"]


@pytest.mark.parametrize("vocabulary", ["anthropic.20251124", "openai.computer", "gemini.3_5"])
async def test_twenty_megabytes_of_pictures_pass(bench: GateBench, tmp_path: Path, vocabulary: str) -> None:
    bench.begin(scenario(bench, vocabulary))
    grant = await bench.grant()
    answers = await converse(bench, grant, vocabulary, tmp_path / "a.sock", pictures=5, size=1_500_000)
    assert [one.stop for one in answers] == ["tool_calls", "tool_calls", "end"]
    assert len(bench.asked()[-1].body) > 20_000_000
