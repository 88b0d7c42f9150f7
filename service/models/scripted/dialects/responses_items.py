"""Output items of the Responses API, whole and as the events that build them up."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from service.models.scripted.conversation import Reply, Use


def output(reply: Reply) -> list[dict[str, Any]]:
    """Return the finished items in order."""
    items: list[dict[str, Any]] = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append({"id": f"rs_{reply.id}", "type": "reasoning", "summary": summary, "encrypted_content": "c2NyaXB0"})
    if reply.text:
        refusal = reply.stop == "refusal"
        part = {"type": "refusal", "refusal": reply.text} if refusal else _text(reply.text)
        items.append({"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "status": "completed",
                      "content": [part]})  # fmt: skip
    return items + [_call(use, f"fc_{reply.id}_{n}") for n, use in enumerate(reply.uses)]


def opened(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item as it is before its first delta."""
    empty: dict[str, dict[str, Any]] = {
        "reasoning": {"summary": []}, "message": {"content": []}, "function_call": {"arguments": ""},
        "custom_tool_call": {"input": ""}, "computer_call": {},
    }  # fmt: skip
    status = {"status": "in_progress"} if "status" in item else {}
    return dict(item) | empty[item["type"]] | status


def deltas(item: Mapping[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    """Yield the events between an item's start and end, without number, item and index."""
    kind = item["type"]
    if kind == "reasoning":
        yield from _reasoning(item["summary"][0]["text"], reply)
    elif kind == "message":
        yield from _message(item["content"][0], reply)
    elif kind != "computer_call":
        name, field = (
            ("function_call_arguments", "arguments") if kind == "function_call" else ("custom_tool_call_input", "input")
        )
        yield from ({"type": f"response.{name}.delta", "delta": piece} for piece in reply.pieces(item[field]))
        yield {"type": f"response.{name}.done", field: item[field], "name": item["name"]}


def _reasoning(text: str, reply: Reply) -> Iterator[dict[str, Any]]:
    at, name = {"summary_index": 0}, "response.reasoning_summary"
    yield {"type": f"{name}_part.added", "part": {"type": "summary_text", "text": ""}} | at
    yield from ({"type": f"{name}_text.delta", "delta": piece} | at for piece in reply.pieces(text))
    yield {"type": f"{name}_text.done", "text": text} | at
    yield {"type": f"{name}_part.done", "part": {"type": "summary_text", "text": text}} | at


def _message(part: Mapping[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    refusal = part["type"] == "refusal"
    name, field, empty = (
        ("refusal", "refusal", {"type": "refusal", "refusal": ""}) if refusal else ("output_text", "text", _text(""))
    )
    at = {"content_index": 0}
    more: dict[str, Any] = {} if refusal else {"logprobs": []}
    yield {"type": "response.content_part.added", "part": empty} | at
    yield from ({"type": f"response.{name}.delta", "delta": piece} | at | more for piece in reply.pieces(part[field]))
    yield {"type": f"response.{name}.done", field: part[field]} | at | more
    yield {"type": "response.content_part.done", "part": part} | at


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call(use: Use, id_: str) -> dict[str, Any]:
    if use.computer and isinstance(use.arguments, dict):
        head = {"id": id_, "type": "computer_call", "call_id": use.id, "status": "completed"}
        return head | {"pending_safety_checks": list(use.checks)} | use.arguments
    arguments = use.arguments if isinstance(use.arguments, str) else json.dumps(use.arguments, ensure_ascii=False)
    head = {"id": id_, "call_id": use.id, "name": use.name, "status": "completed"}
    return head | (
        {"type": "custom_tool_call", "input": arguments}
        if use.custom
        else {"type": "function_call", "arguments": arguments}
    )
