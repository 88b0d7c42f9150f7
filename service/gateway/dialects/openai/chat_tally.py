"""What an answer of Chat Completions or of embeddings took."""

from collections.abc import Mapping
from typing import Any

from service.domain.models import TokenUsage
from service.gateway.dialects.contract import Answer
from service.gateway.dialects.meters import parse
from service.gateway.dialects.openai.errors import error_of, is_state
from service.gateway.dialects.openai.usage import chat_usage
from service.gateway.dialects.reading import items, mapping, text

_WORTH_READING = (b'"usage"', b'"error"', b'"url_citation"', b'"finish_reason":"', b'"finish_reason": "')


class ChatTally:
    def __init__(self) -> None:
        self._usage: TokenUsage | None = None
        self._started = self._complete = self._searched = False
        self._model: str | None = None
        self._id: str | None = None
        self._error: str | None = None
        self._finish: str | None = None

    def event(self, name: bytes, data: bytes) -> None:
        del name
        if data.strip() == b"[DONE]":
            self._complete = True
        elif not self._started or any(word in data for word in _WORTH_READING):
            self._chunk(mapping(parse(data)))

    def body(self, value: object) -> None:
        whole = mapping(value)
        self._chunk(whole)
        self._complete = self._error is None and ("choices" in whole or "data" in whole)

    def started(self) -> bool:
        return self._started

    def answer(self) -> Answer:
        return Answer(
            usage=self._usage,
            reported_model=self._model,
            provider_request_id=self._id,
            server_tools={"web_search": 1} if self._searched else {},
            error=self._error,
            complete=self._complete,
            finish_reason=self._finish,
            overloaded=is_state(self._error),
        )

    def _chunk(self, chunk: Mapping[str, Any]) -> None:
        self._model = text(chunk.get("model")) or self._model
        self._id = text(chunk.get("id")) or self._id
        self._error = error_of(chunk.get("error")) or self._error
        self._usage = chat_usage(mapping(chunk.get("usage"))) or self._usage
        for choice in items(chunk.get("choices")):
            self._choice(mapping(choice))

    def _choice(self, choice: Mapping[str, Any]) -> None:
        said = mapping(choice.get("delta")) or mapping(choice.get("message"))
        self._finish = text(choice.get("finish_reason")) or self._finish
        self._started = self._started or any(value for key, value in said.items() if key != "role")
        notes = items(said.get("annotations"))
        self._searched = self._searched or any(mapping(n).get("type") == "url_citation" for n in notes)
