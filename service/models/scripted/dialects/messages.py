"""Anthropic Messages."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from service.models.scripted import computers
from service.models.scripted.conversation import Offer, Reply, Request, Use
from service.models.scripted.sse import named
from service.models.scripted.tools import SUBMIT
from service.models.scripted.values import joined, mapping, objects, text

_STOPS = {"end": "end_turn", "length": "max_tokens", "refusal": "refusal"}
_ERRORS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
           413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}  # fmt: skip


def read(body: Mapping[str, Any]) -> Request:
    messages = objects(body.get("messages"))
    parts = [part for message in messages for part in objects(message.get("content"))]
    users = [joined(message.get("content")) for message in messages if message.get("role") == "user"]
    schema = mapping(mapping(mapping(body.get("output_config")).get("format")).get("schema"))
    offers = [_offer(tool) for tool in objects(body.get("tools")) if "input_schema" in tool or "type" in tool]
    return Request(
        model=text(body.get("model")),
        streaming=body.get("stream") is True,
        offers=offers,
        results=[text(part.get("tool_use_id")) for part in parts if part.get("type") == "tool_result"],
        answers=sum(message.get("role") == "assistant" for message in messages),
        last_user=users[-1] if users else "",
        submit_by_command=SUBMIT in joined(body.get("system")) + "".join(users[:1]),
        schema=schema or None,
        computers=computers.of_messages(body.get("tools")) + computers.by_function(offers),
        failed=any(part.get("is_error") is True for part in objects(messages[-1].get("content")))
        if messages
        else False,
    )


def whole(reply: Reply) -> dict[str, Any]:
    """Return the answer to a request without ``stream``."""
    content = [_block(kind, value, full=True) for kind, value in _blocks(reply)]
    return _message(reply) | {
        "content": content, "stop_reason": _stop(reply), **({"usage": usage(reply)} if reply.tells_usage else {})
    }  # fmt: skip


def stream(reply: Reply) -> Iterator[bytes]:
    """Yield the frames of a streamed answer."""
    start = _message(reply)
    if reply.tells_usage:
        start["usage"] = usage(reply) | {"output_tokens": 1, "output_tokens_details": {"thinking_tokens": 0}}
    yield named({"type": "message_start", "message": start})
    yield named({"type": "ping"})
    for index, (kind, value) in enumerate(_blocks(reply)):
        yield named({"type": "content_block_start", "index": index, "content_block": _block(kind, value, full=False)})
        for delta in _deltas(reply, kind, value):
            yield named({"type": "content_block_delta", "index": index, "delta": delta})
        yield named({"type": "content_block_stop", "index": index})
    last = {"type": "message_delta", "delta": {"stop_reason": _stop(reply), "stop_sequence": None}}
    yield named(last | ({"usage": usage(reply)} if reply.tells_usage else {}))
    yield named({"type": "message_stop"})


def error(status: int, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": message},
            "request_id": "req_scripted"}  # fmt: skip


def stream_error(message: str) -> bytes:
    return named(error(529, message))


def usage(reply: Reply) -> dict[str, Any]:
    """Return the usage block; its three kinds of input do not overlap."""
    tokens = reply.usage
    return {
        "input_tokens": tokens.input_tokens, "cache_creation_input_tokens": tokens.cache_write_tokens,
        "cache_read_input_tokens": tokens.cached_input_tokens, "output_tokens": tokens.output_tokens,
        "output_tokens_details": {"thinking_tokens": tokens.reasoning_tokens}, "service_tier": "standard",
    }  # fmt: skip


def _message(reply: Reply) -> dict[str, Any]:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model, "content": [],
            "stop_reason": None, "stop_sequence": None}  # fmt: skip


def _blocks(reply: Reply) -> list[tuple[str, Any]]:
    thinking = [("thinking", reply.thinking)] if reply.thinking else []
    said = [("text", reply.text)] if reply.text else []
    return [*thinking, *said, *(("tool_use", use) for use in reply.uses)]


def _block(kind: str, value: Any, *, full: bool) -> dict[str, Any]:
    if kind == "thinking":
        return {"type": kind, "thinking": value if full else "", "signature": "c2NyaXB0ZWQ=" if full else ""}
    if kind == "text":
        return {"type": kind, "text": value if full else ""}
    member: dict[str, Any] = {"toolset_name": value.toolset} if value.toolset else {}
    return member | {"type": kind, "id": value.id, "name": value.name, "input": value.arguments if full else {}}


def _deltas(reply: Reply, kind: str, value: Any) -> Iterator[dict[str, Any]]:
    if kind == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in reply.pieces(value))
        yield {"type": "signature_delta", "signature": "c2NyaXB0ZWQ="}
    elif kind == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in reply.pieces(value))
    else:
        for piece in ["", *reply.pieces(_json(value))]:
            yield {"type": "input_json_delta", "partial_json": piece}


def _json(use: Use) -> str:
    return use.arguments if isinstance(use.arguments, str) else json.dumps(use.arguments, ensure_ascii=False)


def _stop(reply: Reply) -> str:
    return "tool_use" if reply.uses else _STOPS[reply.stop]


def _offer(tool: Mapping[str, Any]) -> Offer:
    return Offer(text(tool.get("name")), "function", mapping(tool.get("input_schema")))
