"""What an answer of Messages took. ``message_start`` opens the account; each ``message_delta`` replaces its figures."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from service.domain.models import TokenUsage
from service.gateway.dialects.contract import Answer
from service.gateway.dialects.meters import parse
from service.gateway.dialects.reading import count, items, kind_of, mapping, text

_SKIPPED = frozenset({b"ping", b"content_block_stop"})
_STATE_ERRORS = frozenset({"overloaded_error", "rate_limit_error", "api_error", "timeout_error"})
_SERVER_BLOCKS = frozenset({"server_tool_use", "mcp_tool_use"})


class AnthropicTally:
    def __init__(self) -> None:
        self._usage: dict[str, Any] = {}
        self._told = self._started = self._complete = False
        self._model: str | None = None
        self._id: str | None = None
        self._error: str | None = None
        self._finish: str | None = None
        self._blocks = Counter[str]()

    def event(self, name: bytes, data: bytes) -> None:
        if name == b"content_block_delta":
            self._started = True
        elif name not in _SKIPPED:
            self._message(mapping(parse(data)))

    def body(self, value: object) -> None:
        whole = mapping(value)
        if whole.get("type") == "error":
            self._fail(whole)
        elif "input_tokens" in whole and "type" not in whole:
            self._told = self._complete = True
        elif whole.get("type") == "message":
            self._open(whole)
            for block in items(whole.get("content")):
                self._block(mapping(block))
            self._told = self._complete = bool(self._usage)

    def started(self) -> bool:
        return self._started

    def answer(self) -> Answer:
        return Answer(
            usage=usage_of(self._usage) if self._told else None,
            reported_model=self._model,
            provider_request_id=self._id,
            server_tools=self._tools(),
            error=self._error,
            complete=self._complete,
            finish_reason=self._finish,
            overloaded=self._error in _STATE_ERRORS,
        )

    def _message(self, event: Mapping[str, Any]) -> None:
        match event.get("type"):
            case "message_start":
                self._open(mapping(event.get("message")))
            case "content_block_start":
                self._started = True
                self._block(mapping(event.get("content_block")))
            case "content_block_delta":
                self._started = True
            case "message_delta":
                self._update(event.get("usage"))
                self._finish = text(mapping(event.get("delta")).get("stop_reason")) or self._finish
                self._told = True
            case "message_stop":
                self._complete = True
            case "error":
                self._fail(event)
            case _:
                pass

    def _open(self, message: Mapping[str, Any]) -> None:
        self._model, self._id = text(message.get("model")), text(message.get("id"))
        self._finish = text(message.get("stop_reason"))
        self._update(message.get("usage"))

    def _update(self, usage: object) -> None:
        self._usage.update((key, value) for key, value in mapping(usage).items() if value is not None)

    def _block(self, block: Mapping[str, Any]) -> None:
        if kind_of(block) in _SERVER_BLOCKS:
            mcp = block.get("type") == "mcp_tool_use"
            self._blocks["mcp" if mcp else text(block.get("name"), 64) or "unknown"] += 1

    def _fail(self, event: Mapping[str, Any]) -> None:
        self._error = text(mapping(event.get("error")).get("type")) or "error"

    def _tools(self) -> dict[str, int]:
        """The provider's own count where it has one; else the blocks that were seen."""
        told = {
            key.removesuffix("_requests"): number
            for key, value in mapping(self._usage.get("server_tool_use")).items()
            if (number := count(value)) and len(key) <= 64
        }
        return {**self._blocks, **told}


def usage_of(usage: Mapping[str, Any]) -> TokenUsage | None:
    """Return the usage block's tokens; null where the block lacks either side.

    What a compaction took stands beside the sums, not in them; iterations of other kinds are in them.
    """
    if not usage:
        return TokenUsage()
    if count(usage.get("input_tokens")) is None or count(usage.get("output_tokens")) is None:
        return None
    apart = [mapping(i) for i in items(usage.get("iterations")) if mapping(i).get("type") == "compaction"]
    total = _tokens(usage)
    for one in apart:
        total = total.plus(_tokens(one))
    return total


def _tokens(block: Mapping[str, Any]) -> TokenUsage:
    output = count(block.get("output_tokens")) or 0
    details = mapping(block.get("output_tokens_details"))
    thinking = count(details.get("thinking_tokens")) or count(details.get("reasoning_tokens")) or 0
    return TokenUsage(
        input_tokens=count(block.get("input_tokens")) or 0,
        cached_input_tokens=count(block.get("cache_read_input_tokens")) or 0,
        cache_write_tokens=count(block.get("cache_creation_input_tokens")) or 0,
        output_tokens=output,
        reasoning_tokens=min(thinking, output),
    )
