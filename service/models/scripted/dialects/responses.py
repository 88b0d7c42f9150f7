"""OpenAI Responses, Codex's tools and code mode included."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from service.models.scripted import computers
from service.models.scripted.conversation import Offer, Reply, Request
from service.models.scripted.dialects import chat
from service.models.scripted.dialects.responses_items import deltas, opened, output
from service.models.scripted.sse import named
from service.models.scripted.tools import SUBMIT
from service.models.scripted.values import joined, mapping, objects, text

_RESULTS = {
    "function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output", "computer_call_output",
}  # fmt: skip
_ANSWERS = {"message", "function_call", "custom_tool_call", "computer_call"}
_FAILED = re.compile(r"^Computer call \S+ failed:", re.MULTILINE)
"""A picture cannot say that something went wrong; our own loops say it so."""
_CREATED = 1_760_000_000

error = chat.error


def read(body: Mapping[str, Any]) -> Request:
    given = body.get("input")
    entries = [{"role": "user", "content": given}] if isinstance(given, str) else objects(given)
    users = [joined(entry.get("content")) for entry in entries if entry.get("role") == "user"]
    late = [
        tool for entry in entries if entry.get("type") == "additional_tools" for tool in objects(entry.get("tools"))
    ]
    offers = [offer for tool in [*objects(body.get("tools")), *late] for offer in _offers(tool)]
    format_ = mapping(mapping(body.get("text")).get("format"))
    return Request(
        model=text(body.get("model")),
        streaming=body.get("stream") is True,
        offers=offers,
        code_mode=any(offer.kind == "custom" and offer.name == "exec" for offer in offers),
        results=[text(entry.get("call_id")) for entry in entries if entry.get("type") in _RESULTS],
        answers=sum(_is_answer(entry) for entry in entries),
        last_user=users[-1] if users else "",
        submit_by_command=SUBMIT in text(body.get("instructions")) + "".join(users[:1]),
        schema=mapping(format_.get("schema")) or None,
        computers=computers.of_responses(body.get("tools")) + computers.by_function(offers),
        failed=bool(users) and entries[-1].get("role") == "user" and _FAILED.search(users[-1]) is not None,
    )


def whole(reply: Reply) -> dict[str, Any]:
    """Return the finished response."""
    status, details = _ending(reply)
    return _head(reply) | {
        "status": status, "incomplete_details": details, "output": output(reply),
        "usage": usage(reply) if reply.tells_usage else None,
    }  # fmt: skip


def stream(reply: Reply) -> Iterator[bytes]:
    """Yield the frames of a streamed answer, numbered."""
    begun: dict[str, Any] = _head(reply) | {
        "status": "in_progress",
        "incomplete_details": None,
        "output": [],
        "usage": None,
    }
    final = whole(reply)
    events: list[dict[str, Any]] = [
        {"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")
    ]
    for index, item in enumerate(output(reply)):
        events.append({"type": "response.output_item.added", "output_index": index, "item": opened(item)})
        events += [{"output_index": index, "item_id": item["id"]} | delta for delta in deltas(item, reply)]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{final['status']}", "response": final})
    for number, event in enumerate(events):
        yield named(event | {"sequence_number": number})


def stream_error(message: str) -> bytes:
    failed: dict[str, Any] = {"id": "resp_scripted", "object": "response", "created_at": _CREATED, "status": "failed", "output": [],
              "error": {"code": "server_error", "message": message}}  # fmt: skip
    return named({"type": "response.failed", "response": failed, "sequence_number": 2})


def usage(reply: Reply) -> dict[str, Any]:
    """Return the usage block; what was cached is part of the input, reasoning part of the output."""
    tokens = reply.usage
    given = tokens.input_tokens + tokens.cached_input_tokens + tokens.cache_write_tokens
    details = {"cached_tokens": tokens.cached_input_tokens, "cache_write_tokens": tokens.cache_write_tokens}
    return {
        "input_tokens": given, "input_tokens_details": details, "output_tokens": tokens.output_tokens,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning_tokens},
        "total_tokens": given + tokens.output_tokens,
    }  # fmt: skip


def _head(reply: Reply) -> dict[str, Any]:
    return {
        "id": f"resp_{reply.id}", "object": "response", "created_at": _CREATED, "model": reply.model, "error": None,
        "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0, "top_p": 1.0,
        "tool_choice": "auto", "tools": [], "store": False, "previous_response_id": None,
    }  # fmt: skip


def _ending(reply: Reply) -> tuple[str, dict[str, Any] | None]:
    cut = reply.stop == "length" and not reply.uses
    return ("incomplete", {"reason": "max_output_tokens"}) if cut else ("completed", None)


def _is_answer(entry: Mapping[str, Any]) -> bool:
    if entry.get("type", "message") == "message":
        return entry.get("role") == "assistant"
    return entry.get("type") in _ANSWERS


def _offers(tool: Mapping[str, Any]) -> list[Offer]:
    kind, name = tool.get("type"), text(tool.get("name"))
    if kind == "namespace":
        return [offer for inner in objects(tool.get("tools")) for offer in _offers(inner)]
    if kind == "function":
        return [Offer(name, "function", mapping(tool.get("parameters")))]
    return [Offer(name, "custom")] if kind == "custom" else []
