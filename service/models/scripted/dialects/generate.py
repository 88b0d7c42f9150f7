"""Gemini generateContent and streamGenerateContent."""

from collections.abc import Iterator, Mapping
from typing import Any

from service.models.scripted import computers
from service.models.scripted.conversation import Offer, Reply, Request
from service.models.scripted.sse import data
from service.models.scripted.values import joined, mapping, objects, text

_STOPS = {"end": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
_ERRORS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
           429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}  # fmt: skip


def read(body: Mapping[str, Any]) -> Request:
    """Return the request; model and streaming are in the path."""
    contents = objects(body.get("contents"))
    users = [joined(content.get("parts")) for content in contents if content.get("role") == "user"]
    results = [
        mapping(part["functionResponse"]) for content in contents for part in objects(content.get("parts"))
        if "functionResponse" in part
    ]  # fmt: skip
    config = mapping(body.get("generationConfig"))
    declared = [
        _offer(each) for tool in objects(body.get("tools")) for each in objects(tool.get("functionDeclarations"))
    ]
    said = mapping(results[-1].get("response")) if results else {}
    return Request(
        model="",
        streaming=False,
        offers=declared,
        results=[text(result.get("id")) for result in results],
        answers=sum(content.get("role") == "model" for content in contents),
        last_user=users[-1] if users else "",
        schema=mapping(config.get("responseJsonSchema") or config.get("responseSchema")) or None,
        computers=computers.of_generate(body.get("tools")) + computers.by_function(declared),
        failed="error" in said,
    )


def whole(reply: Reply) -> dict[str, Any]:
    """Return the answer in one piece."""
    parts: list[dict[str, Any]] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
    parts += [{"text": reply.text}] if reply.text and reply.stop != "refusal" else []
    return _answer(reply, parts + _calls(reply), _STOPS[reply.stop]) | _told(reply)


def stream(reply: Reply) -> Iterator[bytes]:
    """Yield the frames of ``alt=sse``; the usage grows from frame to frame and is whole in the last."""
    parts: list[dict[str, Any]] = [{"text": piece, "thought": True} for piece in reply.pieces(reply.thinking)]
    parts += [{"text": piece} for piece in reply.pieces(reply.text)] if reply.stop != "refusal" else []
    for part in parts:
        yield data(_answer(reply, [part], None) | _told(reply, begun=True))
    yield data(_answer(reply, _calls(reply), _STOPS[reply.stop]) | _told(reply))


def error(status: int, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": _ERRORS.get(status, "INTERNAL")}}


def stream_error(message: str) -> bytes:
    return data(error(503, message))


def usage(reply: Reply, *, begun: bool = False) -> dict[str, Any]:
    """Return the usage block: what was cached is part of the prompt, thoughts are beside the candidates."""
    tokens = reply.usage
    prompt = tokens.input_tokens + tokens.cached_input_tokens + tokens.cache_write_tokens
    said = 1 if begun else tokens.output_tokens - tokens.reasoning_tokens
    thought = 0 if begun else tokens.reasoning_tokens
    return {
        "promptTokenCount": prompt, "cachedContentTokenCount": tokens.cached_input_tokens,
        "candidatesTokenCount": said, "thoughtsTokenCount": thought, "totalTokenCount": prompt + said + thought,
    }  # fmt: skip


def _told(reply: Reply, *, begun: bool = False) -> dict[str, Any]:
    return {"usageMetadata": usage(reply, begun=begun)} if reply.tells_usage else {}


def _answer(reply: Reply, parts: list[dict[str, Any]], finish: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": reply.model, "responseId": reply.id}


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "functionCall": {
                "id": use.id,
                "name": use.name,
                "args": use.arguments if isinstance(use.arguments, dict) else {},
            }
        }
        for use in reply.uses
    ]


def _offer(declaration: Mapping[str, Any]) -> Offer:
    # The official SDK writes the second name, Gemini CLI the first; the API takes both.
    names = ("parametersJsonSchema", "parameters_json_schema", "parameters")
    schema = mapping(next((declaration[name] for name in names if declaration.get(name)), None))
    return Offer(text(declaration.get("name")), "function", schema)
