"""Whether a picture had come to rest in time is chance: requests of our own clients that differ in it are alike."""

from typing import Any

import pytest

from service.domain.desktop import RESTLESS
from service.domain.models import Dialect
from service.gateway.cassettes.normal import Normaliser
from service.models.clients import anthropic, gemini, openai_chat, openai_responses
from service.models.messages import Answer, Ask, ComputerTool, Image, Reach, ResultsTurn, ToolCall, ToolResult, UserTurn

VOCABULARIES = {
    "anthropic.20251124": Dialect.ANTHROPIC, "openai.computer": Dialect.OPENAI, "gemini.3_5": Dialect.GEMINI,
    "workstead.unified": Dialect.OPENAI,
}  # fmt: skip


def sent(vocabulary: str, text: str) -> dict[str, Any]:
    """Return the normalised request that our own client sends."""
    dialect, native = VOCABULARIES[vocabulary], vocabulary != "workstead.unified"
    call = ToolCall(id="c1", name="computer", arguments={"name": "click"}, vocabulary=vocabulary if native else None)
    shown = [Image(media_type="image/png", data="iVBORw0KGgoAAAA=")]
    result = ToolResult(id="c1", name="computer", text=text, vocabulary=call.vocabulary, images=shown)
    turns = [UserTurn(text="Do it."), Answer(calls=[call], items=[{"text": "x"}]), ResultsTurn(results=[result])]
    ask = Ask("", turns, computer=ComputerTool(vocabulary, 1280, 800) if native else None)
    return Normaliser(screen=True).body(dialect, _body(Reach("", "", "m", dialect), ask, native))


def _body(reach: Reach, ask: Ask, native: bool) -> dict[str, Any]:
    if reach.dialect is Dialect.ANTHROPIC:
        return anthropic.request_body(reach, ask)
    if reach.dialect is Dialect.GEMINI:
        return {"contents": [one.model_dump(mode="json", by_alias=True) for one in gemini.request_parts(reach, ask)[0]]}
    return openai_responses.request_body(reach, ask) if native else openai_chat.request_body(reach, ask)


@pytest.mark.parametrize("vocabulary", list(VOCABULARIES))
@pytest.mark.parametrize("said", ["", "3,4", "3,4\n* Calc (soffice)"])
def test_whether_a_picture_had_come_to_rest_does_not_count(vocabulary: str, said: str) -> None:
    restless = "\n".join(filter(None, [said, RESTLESS]))
    assert sent(vocabulary, said) == sent(vocabulary, restless)
    forgotten = "\n[the picture is no longer shown]"
    assert sent(vocabulary, said + forgotten) == sent(vocabulary, restless + forgotten)


@pytest.mark.parametrize("vocabulary", list(VOCABULARIES))
def test_what_else_is_said_counts(vocabulary: str) -> None:
    told = [sent(vocabulary, text) for text in ("", "3,4", "3,5", f"failed\n{RESTLESS}")]
    assert all(one != other for n, one in enumerate(told) for other in told[:n])
