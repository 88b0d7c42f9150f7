"""Answers of each dialect as the providers document them, with what they took."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from service.domain.models import Dialect, ModelSpec, TokenUsage
from service.gateway.dialects import registry
from service.gateway.dialects.contract import Answer, Meter


@dataclass(frozen=True)
class Sample:
    path: str
    body: bytes
    usage: TokenUsage
    model: str
    request_id: str


def sse(events: Sequence[Any], named: bool = True) -> bytes:
    out: list[str] = []
    for event in events:
        if named and isinstance(event, dict):
            out.append(f"event: {event['type']}\n")
        out.append(f"data: {event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)}\n\n")
    return "".join(out).encode()


def spec(dialect: Dialect, **fields: Any) -> ModelSpec:
    return ModelSpec.model_validate({
        "name": "m", "provider": "p", "upstream_id": "m-1", "dialect": dialect, "base_url": "http://upstream.test", **fields,
    })  # fmt: skip


def meter_of(path: str, encoding: str = "", **fields: Any) -> Meter:
    route = registry.route("POST", path, {})
    assert route is not None
    rules = registry.rules_of(route.dialect)
    return rules.meter(
        route, streaming=True, content_type="", content_encoding=encoding, spec=spec(route.dialect, **fields)
    )


def read(path: str, data: bytes, encoding: str = "") -> Answer:
    meter = meter_of(path, encoding)
    meter.feed(data)
    return meter.answer()


ANTHROPIC_EVENTS: list[Any] = [
    {"type": "message_start", "message": {"type": "message", "id": "msg_1", "model": "claude-x", "content": [], "usage": {
        "input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30, "output_tokens": 1}}},
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße, 世界 \u2028"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 7}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {
        "output_tokens": 15, "output_tokens_details": {"thinking_tokens": 4}}},
    {"type": "message_stop"},
]  # fmt: skip
ANTHROPIC_BODY: dict[str, Any] = {
    "type": "message", "id": "msg_1", "model": "claude-x", "content": [{"type": "text", "text": "hello"}],
    "stop_reason": "end_turn", "usage": {
        "input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30, "output_tokens": 15,
        "output_tokens_details": {"thinking_tokens": 4}},
}  # fmt: skip
_ANTHROPIC = TokenUsage(
    input_tokens=10, cache_write_tokens=20, cached_input_tokens=30, output_tokens=15, reasoning_tokens=4
)

CHAT_USAGE = {
    "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens_details": {"reasoning_tokens": 5},
}  # fmt: skip
CHAT_CHUNKS: list[Any] = [
    {"id": "c1", "model": "gpt-x", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}], "usage": None},
    {"id": "c1", "model": "gpt-x", "choices": [{"index": 0, "delta": {"content": 'the "usage" of 世界'}}], "usage": None},
    {"id": "c1", "model": "gpt-x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": None},
    {"id": "c1", "model": "gpt-x", "choices": [], "usage": CHAT_USAGE},
    "[DONE]",
]  # fmt: skip
CHAT_BODY = {
    "id": "c1",
    "model": "gpt-x",
    "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}],
    "usage": CHAT_USAGE,
}
_OPENAI = TokenUsage(input_tokens=40, cached_input_tokens=60, output_tokens=20, reasoning_tokens=5)

RESPONSE: dict[str, Any] = {
    "id": "resp_1", "object": "response", "model": "gpt-x", "status": "completed", "error": None,
    "output": [{"type": "message", "content": []}],
    "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
              "input_tokens_details": {"cached_tokens": 60}, "output_tokens_details": {"reasoning_tokens": 5}},
}  # fmt: skip
RESPONSES_EVENTS: list[Any] = [
    {"type": "response.created", "response": {"id": "resp_1", "model": "gpt-x", "usage": None, "output": []}},
    {"type": "response.output_item.added", "item": {"type": "message"}},
    {"type": "response.output_text.delta", "delta": "世"},
    {"type": "response.output_item.done", "item": {"type": "message"}},
    {"type": "response.completed", "response": RESPONSE},
]

GEMINI_CHUNKS: list[Any] = [
    {"candidates": [{"content": {"parts": [{"text": "世"}]}}], "modelVersion": "gemini-x", "responseId": "r1",
     "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 1, "cachedContentTokenCount": 20}},
    {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}], "modelVersion": "gemini-x",
     "responseId": "r1", "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 8, "thoughtsTokenCount": 4,
                                           "toolUsePromptTokenCount": 3, "totalTokenCount": 65}},
]  # fmt: skip
_GEMINI = TokenUsage(input_tokens=33, cached_input_tokens=20, output_tokens=12, reasoning_tokens=4)
_STREAM, _GENERATE = "/v1beta/models/g:streamGenerateContent", "/v1beta/models/g:generateContent"
GEMINI_BODY = {
    **GEMINI_CHUNKS[1],
    "usageMetadata": {**GEMINI_CHUNKS[0]["usageMetadata"], **GEMINI_CHUNKS[1]["usageMetadata"]},
}

STREAMS = {
    "messages": Sample("/v1/messages", sse(ANTHROPIC_EVENTS), _ANTHROPIC, "claude-x", "msg_1"),
    "chat": Sample("/v1/chat/completions", sse(CHAT_CHUNKS, named=False), _OPENAI, "gpt-x", "c1"),
    "responses": Sample("/v1/responses", sse(RESPONSES_EVENTS), _OPENAI, "gpt-x", "resp_1"),
    "gemini": Sample(_STREAM, sse(GEMINI_CHUNKS, named=False), _GEMINI, "gemini-x", "r1"),
    "gemini array": Sample(_STREAM, json.dumps(GEMINI_CHUNKS).encode(), _GEMINI, "gemini-x", "r1"),
}
BODIES = {
    "messages": Sample("/v1/messages", json.dumps(ANTHROPIC_BODY).encode(), _ANTHROPIC, "claude-x", "msg_1"),
    "chat": Sample("/v1/chat/completions", json.dumps(CHAT_BODY).encode(), _OPENAI, "gpt-x", "c1"),
    "responses": Sample("/v1/responses", json.dumps(RESPONSE).encode(), _OPENAI, "gpt-x", "resp_1"),
    "gemini": Sample(_GENERATE, json.dumps(GEMINI_BODY).encode(), _GEMINI, "gemini-x", "r1"),
}
