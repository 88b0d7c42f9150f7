"""What an answer of Gemini took. Every chunk carries the sums so far; the last one is the account."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from service.domain.models import TokenUsage
from service.gateway.dialects.contract import Answer
from service.gateway.dialects.meters import parse
from service.gateway.dialects.reading import count, items, mapping, text

_STATE = frozenset({"UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL", "DEADLINE_EXCEEDED"})


class GeminiTally:
    def __init__(self) -> None:
        self._usage: dict[str, Any] = {}
        self._started = self._complete = False
        self._model: str | None = None
        self._id: str | None = None
        self._error: str | None = None
        self._finish: str | None = None
        self._ran = Counter[str]()
        self._searches: set[str] = set()
        self._pages: set[str] = set()

    def event(self, name: bytes, data: bytes) -> None:
        del name
        self._chunk(mapping(parse(data)))

    def body(self, value: object) -> None:
        """A stream without ``alt=sse`` is one array of chunks."""
        for chunk in items(value) or [value]:
            self._chunk(mapping(chunk))

    def started(self) -> bool:
        return self._started

    def answer(self) -> Answer:
        return Answer(
            usage=usage_of(self._usage) if self._complete and self._usage else None,
            reported_model=self._model,
            provider_request_id=self._id,
            server_tools=self._tools(),
            error=self._error,
            complete=self._complete,
            finish_reason=self._finish,
            overloaded=self._error in _STATE,
        )

    def _chunk(self, chunk: Mapping[str, Any]) -> None:
        self._model = text(chunk.get("modelVersion")) or self._model
        self._id = text(chunk.get("responseId")) or self._id
        self._usage.update((k, v) for k, v in mapping(chunk.get("usageMetadata")).items() if v is not None)
        if error := mapping(chunk.get("error")):
            self._error = text(error.get("status")) or "error"
        for candidate in items(chunk.get("candidates")):
            self._candidate(mapping(candidate))
        if mapping(chunk.get("promptFeedback")).get("blockReason") or "totalTokens" in chunk:
            self._complete = True
            self._usage = self._usage or {"promptTokenCount": 0}

    def _candidate(self, candidate: Mapping[str, Any]) -> None:
        for part in items(mapping(candidate.get("content")).get("parts")):
            self._started = True
            if "executableCode" in mapping(part):
                self._ran["code_execution"] += 1
        self._complete = self._complete or candidate.get("finishReason") is not None
        self._finish = text(candidate.get("finishReason")) or self._finish
        grounding = mapping(candidate.get("groundingMetadata"))
        self._searches.update(q for q in items(grounding.get("webSearchQueries")) if isinstance(q, str))
        pages = items(mapping(candidate.get("urlContextMetadata")).get("urlMetadata"))
        self._pages.update(str(mapping(page).get("retrievedUrl"))[:2000] for page in pages)

    def _tools(self) -> dict[str, int]:
        found = {**self._ran, "google_search": len(self._searches), "url_context": len(self._pages)}
        return {name: uses for name, uses in found.items() if uses}


def usage_of(told: Mapping[str, Any]) -> TokenUsage | None:
    """Return the tokens of a usage block; null where it names no input. Thoughts stand beside the candidates."""
    prompt = count(told.get("promptTokenCount"))
    if prompt is None:
        return None
    cached = min(count(told.get("cachedContentTokenCount")) or 0, prompt)
    thoughts = count(told.get("thoughtsTokenCount")) or 0
    return TokenUsage(
        input_tokens=prompt - cached + (count(told.get("toolUsePromptTokenCount")) or 0),
        cached_input_tokens=cached,
        output_tokens=(count(told.get("candidatesTokenCount")) or 0) + thoughts,
        reasoning_tokens=thoughts,
    )
