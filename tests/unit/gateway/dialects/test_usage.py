"""Tokens as providers tell them, token for token, in every dialect, streamed or not."""

import json
from typing import Any

import pytest

from service.domain.models import TokenUsage
from tests.unit.gateway.dialects.answers import (
    ANTHROPIC_BODY,
    ANTHROPIC_EVENTS,
    BODIES,
    CHAT_CHUNKS,
    GEMINI_CHUNKS,
    RESPONSE,
    RESPONSES_EVENTS,
    STREAMS,
    Sample,
    meter_of,
    read,
    sse,
)

_ALL = [*(("stream " + k, v) for k, v in STREAMS.items()), *(("body " + k, v) for k, v in BODIES.items())]


@pytest.mark.parametrize("sample", [v for _, v in _ALL], ids=[k for k, _ in _ALL])
def test_every_dialect_tells_its_tokens(sample: Sample) -> None:
    answer = read(sample.path, sample.body)
    assert answer.usage == sample.usage
    assert (answer.reported_model, answer.provider_request_id) == (sample.model, sample.request_id)
    assert answer.complete
    assert answer.error is None
    assert answer.finish_reason in ("end_turn", "stop", "completed", "STOP")


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/v1/messages", {**ANTHROPIC_BODY, "stop_reason": "max_tokens"}, "max_tokens"),
        ("/v1/responses", {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
         "content_filter"),
        ("/v1/responses", {**RESPONSE, "status": "in_progress"}, None),
        ("/v1/responses", {**RESPONSE, "status": {"no": "text"}}, None),
    ],
)  # fmt: skip
def test_why_a_model_stopped_is_told_in_its_own_words(path: str, body: dict[str, Any], why: str | None) -> None:
    assert read(path, json.dumps(body).encode()).finish_reason == why


@pytest.mark.parametrize(
    ("path", "events"),
    [
        ("/v1/messages", sse(ANTHROPIC_EVENTS[:5])),
        ("/v1/chat/completions", sse(CHAT_CHUNKS[:3], named=False)),
        ("/v1/responses", sse(RESPONSES_EVENTS[:4])),
        ("/v1beta/models/g:streamGenerateContent", sse(GEMINI_CHUNKS[:1], named=False)),
    ],
)
def test_a_cut_stream_tells_nothing(path: str, events: bytes) -> None:
    meter = meter_of(path)
    meter.feed(events)
    assert meter.first_token_seen()
    answer = meter.answer()
    assert answer.usage is None
    assert not answer.complete


def test_the_first_token_is_not_the_first_byte() -> None:
    for path, before, then in (
        ("/v1/messages", sse(ANTHROPIC_EVENTS[:2]), sse(ANTHROPIC_EVENTS[2:3])),
        ("/v1/chat/completions", sse(CHAT_CHUNKS[:1], named=False), sse(CHAT_CHUNKS[1:2], named=False)),
        ("/v1/responses", sse(RESPONSES_EVENTS[:1]), sse(RESPONSES_EVENTS[1:2])),
    ):
        meter = meter_of(path)
        meter.feed(before)
        assert not meter.first_token_seen(), path
        meter.feed(then)
        assert meter.first_token_seen(), path


def test_what_a_compaction_took_is_added() -> None:
    usage: dict[str, Any] = {**ANTHROPIC_BODY["usage"], "iterations": [
        {"type": "message", "input_tokens": 10, "output_tokens": 15},
        {"type": "compaction", "input_tokens": 1000, "output_tokens": 50, "cache_read_input_tokens": 5},
    ]}  # fmt: skip
    answer = read("/v1/messages", json.dumps({**ANTHROPIC_BODY, "usage": usage}).encode())
    assert answer.usage == TokenUsage(
        input_tokens=1010, cache_write_tokens=20, cached_input_tokens=35, output_tokens=65, reasoning_tokens=4
    )


def test_reasoning_beside_the_output_is_part_of_it() -> None:
    usage = {
        "prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 20,
        "completion_tokens_details": {"reasoning_tokens": 7},
    }  # fmt: skip
    answer = read("/v1/chat/completions", json.dumps({"choices": [], "usage": usage}).encode())
    assert answer.usage == TokenUsage(input_tokens=10, output_tokens=10, reasoning_tokens=7)


def test_counting_costs_nothing() -> None:
    for path, body in (
        ("/v1/messages/count_tokens", {"input_tokens": 900}),
        ("/v1/responses/input_tokens", {"object": "response.input_tokens", "input_tokens": 900}),
        ("/v1beta/models/g:countTokens", {"totalTokens": 900}),
    ):
        assert read(path, json.dumps(body).encode()).usage == TokenUsage(), path


def test_embeddings_have_input_only() -> None:
    body: dict[str, Any] = {
        "object": "list",
        "data": [],
        "model": "e",
        "usage": {"prompt_tokens": 8, "total_tokens": 8},
    }
    answer = read("/v1/embeddings", json.dumps(body).encode())
    assert answer.usage == TokenUsage(input_tokens=8)
    assert answer.complete


@pytest.mark.parametrize("value", [-1, 1.5, "12", None, True, 1 << 60, [], {}])
def test_figures_that_are_none_are_unknown(value: object) -> None:
    broken = {**ANTHROPIC_BODY, "usage": {"input_tokens": value, "output_tokens": 3}}
    assert read("/v1/messages", json.dumps(broken).encode()).usage is None
    response = {**RESPONSE, "usage": {"input_tokens": value, "output_tokens": 3}}
    assert read("/v1/responses", json.dumps(response).encode()).usage is None


def test_errors_inside_a_stream_are_told() -> None:
    cases: list[tuple[str, list[Any], str, bool]] = [
        ("/v1/messages", [{"type": "error", "error": {"type": "overloaded_error"}}], "overloaded_error", True),
        ("/v1/messages", [{"type": "error", "error": {"type": "invalid_request_error"}}], "invalid_request_error", False),
        ("/v1/chat/completions", [{"error": {"type": "server_error", "message": "x"}, "type": ""}], "server_error", True),
        ("/v1/chat/completions", [{"error": {"code": 502}, "type": ""}], "502", True),
        ("/v1/responses", [{"type": "error", "code": "rate_limit_exceeded", "message": "x"}], "rate_limit_exceeded", True),
        (
            "/v1/responses",
            [{"type": "response.failed", "response": {"error": {"code": "server_error"}, "output": []}}],
            "server_error",
            True,
        ),
        ("/v1beta/models/g:streamGenerateContent", [{"error": {"status": "UNAVAILABLE"}, "type": ""}], "UNAVAILABLE", True),
    ]  # fmt: skip
    for path, events, error, state in cases:
        answer = read(path, sse(events))
        assert (answer.error, answer.overloaded, answer.usage) == (error, state, None), path


def test_uses_of_provider_side_tools_are_counted() -> None:
    started = {"type": "content_block_start", "content_block": {"type": "server_tool_use", "name": "code_execution"}}
    delta = {"type": "message_delta", "usage": {"output_tokens": 2, "server_tool_use": {"web_search_requests": 3}}}
    events = [ANTHROPIC_EVENTS[0], started, started, delta, {"type": "message_stop"}]
    assert read("/v1/messages", sse(events)).server_tools == {"code_execution": 2, "web_search": 3}
    item = {"type": "web_search_call"}
    done = {"type": "response.output_item.done", "item": item}
    last = {"type": "response.completed", "response": {**RESPONSE, "output": [item, item]}}
    assert read("/v1/responses", sse([done, done, last])).server_tools == {"web_search": 2}
    assert read("/v1/responses", json.dumps(last["response"]).encode()).server_tools == {"web_search": 2}
    grounded: dict[str, Any] = {
        "finishReason": "STOP", "groundingMetadata": {"webSearchQueries": ["a", "b"]},
        "content": {"parts": [{"executableCode": {"code": "1"}}]},
    }  # fmt: skip
    found = read("/v1beta/models/g:generateContent", json.dumps({"candidates": [grounded]}).encode()).server_tools
    assert found == {"google_search": 2, "code_execution": 1}
    note = {"choices": [{"message": {"content": "x", "annotations": [{"type": "url_citation"}]}}]}
    assert read("/v1/chat/completions", json.dumps(note).encode()).server_tools == {"web_search": 1}
