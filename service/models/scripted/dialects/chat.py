"""OpenAI Chat Completions."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from service.models.scripted import computers
from service.models.scripted.conversation import Offer, Reply, Request, Use
from service.models.scripted.sse import data
from service.models.scripted.tools import SUBMIT
from service.models.scripted.values import joined, mapping, objects, text

_STOPS = {"end": "stop", "length": "length", "refusal": "stop"}
_CREATED = 1_760_000_000


def read(body: Mapping[str, Any]) -> Request:
    messages = objects(body.get("messages"))
    users = [joined(message.get("content")) for message in messages if message.get("role") == "user"]
    system = [joined(message.get("content")) for message in messages if message.get("role") in {"system", "developer"}]
    schema = mapping(mapping(mapping(body.get("response_format")).get("json_schema")).get("schema"))
    streaming = body.get("stream") is True
    offers = [offer for tool in objects(body.get("tools")) if (offer := _offer(tool)) is not None]
    return Request(
        model=text(body.get("model")),
        streaming=streaming,
        offers=offers,
        results=[text(message.get("tool_call_id")) for message in messages if message.get("role") == "tool"],
        answers=sum(message.get("role") == "assistant" for message in messages),
        last_user=users[-1] if users else "",
        submit_by_command=SUBMIT in "".join([*system[:1], *users[:1]]),
        wants_usage=not streaming or mapping(body.get("stream_options")).get("include_usage") is True,
        schema=schema or None,
        computers=computers.by_function(offers),
    )


def whole(reply: Reply) -> dict[str, Any]:
    """Return the answer to a request without ``stream``."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.stop == "refusal":
        message |= {"content": None, "refusal": reply.text}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.uses:
        message["tool_calls"] = [_call(use) for use in reply.uses]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _stop(reply)}
    told = {"usage": usage(reply)} if reply.tells_usage else {}
    return _head(reply, "chat.completion") | {"choices": [choice]} | told


def stream(reply: Reply) -> Iterator[bytes]:
    """Yield the frames of a streamed answer; the usage comes in a last chunk without choices, if at all."""
    said = "refusal" if reply.stop == "refusal" else "content"
    yield _chunk(reply, {"role": "assistant", "content": None if reply.uses else ""})
    for piece in reply.pieces(reply.thinking):
        yield _chunk(reply, {"reasoning_content": piece})
    for piece in reply.pieces(reply.text):
        yield _chunk(reply, {said: piece})
    for index, use in enumerate(reply.uses):
        call = _call(use)
        arguments = call["function"]["arguments"]
        call["function"]["arguments"] = ""
        yield _chunk(reply, {"tool_calls": [{"index": index} | call]})
        for piece in reply.pieces(arguments):
            yield _chunk(reply, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield _chunk(reply, {}, _stop(reply))
    if reply.tells_usage:
        yield data(_head(reply, "chat.completion.chunk") | {"choices": [], "usage": usage(reply)})
    yield b"data: [DONE]\n\n"


def error(status: int, message: str) -> dict[str, Any]:
    kind, code = {
        401: ("invalid_request_error", "invalid_api_key"), 429: ("requests", "rate_limit_exceeded")
    }.get(status, ("invalid_request_error" if status < 500 else "server_error", None))  # fmt: skip
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def stream_error(message: str) -> bytes:
    return data(error(500, message))


def usage(reply: Reply) -> dict[str, Any]:
    """Return the usage block; what was cached is part of the prompt, reasoning part of the completion."""
    tokens = reply.usage
    prompt = tokens.input_tokens + tokens.cached_input_tokens + tokens.cache_write_tokens
    details = {"cached_tokens": tokens.cached_input_tokens, "cache_write_tokens": tokens.cache_write_tokens}
    return {
        "prompt_tokens": prompt, "completion_tokens": tokens.output_tokens,
        "total_tokens": prompt + tokens.output_tokens, "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning_tokens},
    }  # fmt: skip


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": _CREATED, "model": reply.model}


def _chunk(reply: Reply, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return data(_head(reply, "chat.completion.chunk") | {"choices": [choice]})


def _call(use: Use) -> dict[str, Any]:
    arguments = use.arguments if isinstance(use.arguments, str) else json.dumps(use.arguments, ensure_ascii=False)
    return {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": arguments}}


def _stop(reply: Reply) -> str:
    return "tool_calls" if reply.uses else _STOPS[reply.stop]


def _offer(tool: Mapping[str, Any]) -> Offer | None:
    function = mapping(tool.get("function"))
    if tool.get("type") != "function" or not text(function.get("name")):
        return None
    return Offer(text(function.get("name")), "function", mapping(function.get("parameters")))
