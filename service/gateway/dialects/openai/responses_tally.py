"""What an answer of Responses took: its last event carries the whole account."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from service.domain.models import TokenUsage
from service.gateway.dialects.contract import Answer
from service.gateway.dialects.meters import parse
from service.gateway.dialects.openai.errors import error_of, is_state
from service.gateway.dialects.openai.usage import responses_usage
from service.gateway.dialects.reading import items, kind_of, mapping, text

_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})
_SERVER_CALLS = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "image_generation_call": "image_generation",
    "mcp_call": "mcp",
    "program": "programmatic_tool_calling",
}


class ResponsesTally:
    def __init__(self) -> None:
        self._usage: TokenUsage | None = None
        self._started = self._complete = False
        self._model: str | None = None
        self._id: str | None = None
        self._error: str | None = None
        self._finish: str | None = None
        self._calls = Counter[str]()

    def event(self, name: bytes, data: bytes) -> None:
        if name.endswith(b".delta"):
            self._started = True
        else:
            self._take(mapping(parse(data)))

    def body(self, value: object) -> None:
        whole = mapping(value)
        self._response(whole)
        self._complete = self._error is None and "output" in whole
        if "object" in whole and "input_tokens" in whole and "output" not in whole:
            # The answer of the route that only counts: it cost nothing.
            self._usage, self._complete = TokenUsage(), True

    def started(self) -> bool:
        return self._started

    def answer(self) -> Answer:
        return Answer(
            usage=self._usage,
            reported_model=self._model,
            provider_request_id=self._id,
            server_tools=dict(self._calls),
            error=self._error,
            complete=self._complete,
            finish_reason=self._finish,
            overloaded=is_state(self._error),
        )

    def _take(self, event: Mapping[str, Any]) -> None:
        kind = kind_of(event)
        if kind in _LAST:
            self._response(mapping(event.get("response")))
            self._complete = True
        elif kind == "response.output_item.done":
            self._started = True
            self._calls.update(_calls([event.get("item")]))
        elif kind == "error":
            self._error = error_of(event.get("error")) or text(event.get("code")) or "error"
        elif kind.endswith((".delta", ".output_item.added")):
            self._started = True
        elif kind == "response.created":
            self._response(mapping(event.get("response")))

    def _response(self, response: Mapping[str, Any]) -> None:
        self._model = text(response.get("model")) or self._model
        self._id = text(response.get("id")) or self._id
        self._error = error_of(response.get("error")) or self._error
        self._finish = _finish(response) or self._finish
        self._usage = responses_usage(mapping(response.get("usage"))) or self._usage
        # The same items came one by one before, unless the stream began late or was none.
        self._calls |= _calls(items(response.get("output")))


def _finish(response: Mapping[str, Any]) -> str | None:
    """Return the reason of an incomplete answer, else how the answer stands; null while it goes on."""
    status = text(response.get("status"))
    reason = text(mapping(response.get("incomplete_details")).get("reason"))
    return reason or (status if status not in ("in_progress", "queued") else None)


def _calls(output: list[Any]) -> Counter[str]:
    kinds = (kind_of(mapping(item)) for item in output)
    return Counter(_SERVER_CALLS[kind] for kind in kinds if kind in _SERVER_CALLS)
