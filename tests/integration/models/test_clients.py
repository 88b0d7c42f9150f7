"""The official SDKs against the scripted provider: one neutral answer for each dialect, whatever goes wrong."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.domain.models import Dialect
from service.models.clients import client_for
from service.models.messages import (
    Answer,
    Ask,
    GatewayAway,
    Image,
    ModelClient,
    ModelRefused,
    Reach,
    ResultsTurn,
    ToolResult,
    ToolSpec,
    Turn,
    UserTurn,
)
from service.models.scripted.scenario import Action, Scenario
from service.models.scripted.server import Scripted
from tests.integration.models.pipe import piped

WAYS = {
    "anthropic": (Dialect.ANTHROPIC, False),
    "responses": (Dialect.OPENAI, False),
    "chat": (Dialect.OPENAI, True),
    "gemini": (Dialect.GEMINI, False),
}
BASH = ToolSpec(
    "bash", "Run it.", {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
)
PIXEL = Image(media_type="image/png", data="iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")  # fmt: skip
STEPS = [[Action(run="echo one"), Action(run="echo two")], Action(run="echo ü€")]


@pytest.fixture(scope="module")
def provider() -> Iterator[Scripted]:
    talk = Scenario(name="two-turns", steps=STEPS, final="Done ✓", thinking="Let me think — yes")
    with Scripted([talk, Scenario(name="long", final="x" * 3_000_000, piece_chars=50_000)]) as running:
        yield running


@pytest.fixture
async def socket(provider: Scripted, tmp_path: Path) -> AsyncIterator[Path]:
    path = tmp_path / "models.sock"
    async with piped(path, provider.port):
        yield path


@pytest.fixture(params=list(WAYS))
def connect(request: pytest.FixtureRequest, socket: Path) -> Callable[..., ModelClient]:
    dialect, chat = WAYS[request.param]

    def made(scenario: str, **fields: Any) -> ModelClient:
        token = f"sk-scripted-{scenario}.{request.node.name}"
        return client_for(Reach(str(socket), token, "some-model", dialect, chat=chat, **fields))

    return made


async def ask_once(client: ModelClient, turns: list[Turn] | None = None, **fields: Any) -> Answer:
    try:
        return await client.ask(Ask("Be brief.", turns or [UserTurn(text="Do it.")], [BASH], **fields))
    finally:
        await client.close()


async def test_a_conversation_with_parallel_calls_and_images(
    connect: Callable[..., ModelClient], provider: Scripted
) -> None:
    client = connect("two-turns", max_output_tokens=1000)
    before = len(provider.requests())
    turns: list[Turn] = [UserTurn(text="Do it.", images=[PIXEL])]
    answers: list[Answer] = []
    for _ in range(3):
        answer = await client.ask(Ask("Be brief.", turns, [BASH]))
        answers.append(Answer.model_validate_json(answer.model_dump_json()))
        results = [ToolResult(id=c.id, name=c.name, text="ok", images=[PIXEL]) for c in answer.calls]
        turns += [answers[-1], ResultsTurn(results=results)] if results else [answers[-1]]
    await client.close()
    first, second, third = answers
    assert [c.arguments for c in first.calls] == [{"command": "echo one"}, {"command": "echo two"}]
    assert [c.arguments for c in second.calls] == [{"command": "echo ü€"}]
    assert (first.stop, second.stop, third.stop) == ("tool_calls", "tool_calls", "end")
    assert (third.text, third.calls) == ("Done ✓", [])
    sent = provider.requests()[before:]
    assert [a.usage.total if a.usage else None for a in answers] == [e.usage.total if e.usage else None for e in sent]
    assert [e.turn for e in sent] == [0, 1, 2]
    assert b"iVBORw0KGgo" in sent[-1].body


@pytest.mark.parametrize("scenario", ["split", "slow"])
async def test_answers_in_pieces_are_whole(connect: Callable[..., ModelClient], scenario: str) -> None:
    answer = await ask_once(connect(scenario))
    assert answer.calls[0].arguments == {"command": "ls -la /workspace"}


async def test_an_answer_without_usage_says_so(connect: Callable[..., ModelClient]) -> None:
    assert (await ask_once(connect("no-usage"))).usage is None


@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        ("e401", "model_refused"),
        ("e400", "model_refused"),
        ("e500", "provider_failed"),
        ("e429", "provider_failed"),
        ("cut", "answer_cut"),
        ("content-type", ("bad_answer", "answer_cut")),
        ("malformed", ("bad_answer", "answer_cut")),
        ("stream-error", ("answer_cut", "provider_failed", "bad_answer")),
    ],
)
async def test_what_goes_wrong_has_a_type(
    connect: Callable[..., ModelClient], scenario: str, kind: str | tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.models.clients.persistent.FIRST_PAUSE_S", 0.001)
    with pytest.raises(ModelRefused) as caught:
        await ask_once(connect(scenario))
    assert caught.value.type in ((kind,) if isinstance(kind, str) else kind)


async def test_an_answer_cut_once_is_asked_for_again(connect: Callable[..., ModelClient]) -> None:
    answer = await ask_once(connect("cut-once"))
    assert answer.calls[0].arguments == {"command": "ls -la /workspace"}


async def test_refusal_empty_and_cut_answers(connect: Callable[..., ModelClient]) -> None:
    assert (await ask_once(connect("refusal"))).stop == "refusal"
    assert (await ask_once(connect("truncated"))).stop == "length"
    empty = await ask_once(connect("empty"))
    assert (empty.text, empty.calls, empty.stop) == ("", [], "end")


async def test_arguments_that_are_no_json(
    connect: Callable[..., ModelClient], provider: Scripted, request: pytest.FixtureRequest
) -> None:
    if "gemini" in request.node.name:
        pytest.skip("its arguments are JSON by construction")
    client = connect("invalid-arguments")
    turns: list[Turn] = [UserTurn(text="Do it.")]
    answer = await client.ask(Ask("", turns, [BASH]))
    (call,) = answer.calls
    assert (call.arguments, call.raw) == (None, '{"command": ')
    turns += [answer, ResultsTurn(results=[ToolResult(id=call.id, name=call.name, text="bad", is_error=True)])]
    assert (await client.ask(Ask("", turns, [BASH]))).calls[0].arguments == {"command": "ls -la /workspace"}
    await client.close()


async def test_a_gateway_that_is_not_there(
    connect: Callable[..., ModelClient], socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.models.clients.persistent.FIRST_PAUSE_S", 0.001)
    client = connect("success")
    socket.unlink()  # noqa: ASYNC240 - it is there or not at once
    with pytest.raises(GatewayAway):
        await ask_once(client)


async def test_effort_and_temperature_are_passed_on(connect: Callable[..., ModelClient], provider: Scripted) -> None:
    await ask_once(connect("text", reasoning=True), effort="low")
    body = provider.requests()[-1].body.decode()
    assert '"low"' in body.lower()
    await ask_once(connect("text"), temperature=0.25)
    assert "0.25" in provider.requests()[-1].body.decode()


async def test_one_client_serves_many_at_once_and_says_what_each_is_for(
    connect: Callable[..., ModelClient], provider: Scripted
) -> None:
    client, before = connect("slow"), len(provider.requests())
    asks = [Ask("Be brief.", [UserTurn(text="Do it.")], subject=f"grd_{n}") for n in range(4)]
    answers = await asyncio.gather(*(client.ask(ask) for ask in asks), client.ask(Ask("", [UserTurn(text="Do it.")])))
    await client.close()
    assert len({answer.text for answer in answers}) == 1
    said = sorted(one.headers.get("x-workstead-subject", "") for one in provider.requests()[before:])
    assert said == ["", "grd_0", "grd_1", "grd_2", "grd_3"]


async def test_a_large_answer_is_cut_off_by_us(
    connect: Callable[..., ModelClient], provider: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.models.clients.reaching.ANSWER_BYTES", 1_000_000)
    with pytest.raises(ModelRefused) as caught:
        await ask_once(connect("long"))
    assert caught.value.type == "bad_answer"
