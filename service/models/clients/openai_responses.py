"""OpenAI Responses, streamed, without anything kept at the provider, over the official SDK."""

from collections.abc import Mapping, Sequence
from typing import Any

import openai

from service.domain.models import Dialect, TokenUsage
from service.models.clients.computers import responses as computers
from service.models.clients.computers.native import check_native
from service.models.clients.openai_errors import sdk_errors, sdk_for
from service.models.clients.reaching import MAX_CALLS, Size, count, headers_of, inner, listed, tool_call
from service.models.messages import (
    Answer,
    Ask,
    ComputerTool,
    GatewayAway,
    ModelRefused,
    Reach,
    Stop,
    ToolCall,
    ToolResult,
    Turn,
    UserTurn,
)

_CALLS = ("function_call", computers.CALL)
_ENDS = ("response.completed", "response.incomplete", "response.failed")


def connect(reach: Reach) -> "ResponsesClient":
    return ResponsesClient(reach)


class ResponsesClient:
    """See :class:`service.models.messages.ModelClient`."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._sdk: openai.AsyncOpenAI = sdk_for(reach)

    async def close(self) -> None:
        await self._sdk.close()

    async def ask(self, ask: Ask) -> Answer:
        body = request_body(self._reach, ask)
        items: dict[int, dict[str, Any]] = {}
        size = Size()
        with sdk_errors():
            async with await self._sdk.responses.create(**body, extra_headers=headers_of(ask), stream=True) as stream:
                async for event in stream:
                    found: dict[str, Any] = event.model_dump(mode="json", exclude_unset=True, warnings=False)
                    size.add(str(found.get("delta") or ""))
                    if found.get("type") == "response.output_item.done":
                        item = items[int(found["output_index"])] = found["item"]
                        size.add(str(item) if item.get("type") == computers.CALL else "")  # it has no deltas
                    elif found.get("type") in _ENDS:
                        told = [item for _, item in sorted(items.items())]
                        return read_answer(found["response"], told, ask.computer)
        raise GatewayAway("answer_cut", "the stream ended before the answer did")


def request_body(reach: Reach, ask: Ask) -> dict[str, Any]:
    """Return the request as the SDK takes it. Raises Invalid ``vocabulary_not_native``."""
    body: dict[str, Any] = {"model": reach.upstream_id, "input": _input(ask.turns), "store": False}
    if ask.system:
        body["instructions"] = ask.system
    tools: list[dict[str, Any]] = [
        {"type": "function", "name": t.name, "description": t.description, "parameters": t.parameters, "strict": False}
        for t in ask.tools
    ]
    if (computer := check_native(ask.computer, Dialect.OPENAI)) is not None:
        tools.append(computers.entry(computer))
        body |= computers.settings(computer)
    if tools:
        body["tools"] = tools
    if limit := ask.max_output_tokens or reach.max_output_tokens:
        body["max_output_tokens"] = limit
    if reach.reasoning or computer is not None:  # such models think, and each call is refused without its reasoning
        body["include"] = ["reasoning.encrypted_content"]
    if ask.effort is not None:
        body["reasoning"] = {"effort": ask.effort}
    elif ask.temperature is not None:
        body["temperature"] = ask.temperature
    return body


def _input(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for turn in turns:
        if isinstance(turn, Answer):
            # Reasoning whose content was not given cannot be found again by a provider that keeps nothing.
            items += [i for i in turn.items if i.get("type") != "reasoning" or i.get("encrypted_content")]
        elif isinstance(turn, UserTurn):
            items.append({"role": "user", "content": [{"type": "input_text", "text": turn.text}, *_images(turn)]})
        else:
            items += [_result(one) for one in turn.results]
            items += computers.remarks([one for one in turn.results if computers.is_result(one)])
    return items


def _images(holder: UserTurn | ToolResult) -> list[dict[str, Any]]:
    return [{"type": "input_image", "image_url": computers.data_url(i), "detail": "auto"} for i in holder.images]


def _result(one: ToolResult) -> dict[str, Any]:
    if computers.is_result(one):
        return computers.result(one)
    output: Any = one.text
    if one.images:
        output = [{"type": "input_text", "text": one.text}, *_images(one)]
    return {"type": "function_call_output", "call_id": one.id, "output": output}


def read_answer(
    response: Mapping[str, Any], seen: Sequence[dict[str, Any]], computer: ComputerTool | None = None
) -> Answer:
    """Read the response's own end; ``seen`` are the items that the stream told, where the end leaves them out.

    Raises ModelRefused (the response failed).
    """
    if response.get("status") == "failed":
        error = inner(response, "error")
        raise ModelRefused("provider_failed", str(error.get("message") or error.get("code"))[:2000], http_status=200)
    items: list[dict[str, Any]] = list(response.get("output") or seen)
    calls = [_call(item, computer) for item in items if item.get("type") in _CALLS]
    refusal = "".join(str(part.get("refusal") or "") for part in _parts(items))
    stop, detail = _stop(response, refusal, calls)
    return Answer(
        text="".join(str(part.get("text") or "") for part in _parts(items)) or refusal,
        thinking="\n\n".join(str(s.get("text") or "") for i in items for s in listed(i, "summary")),
        calls=calls[:MAX_CALLS],
        stop=stop,
        stop_detail=detail,
        items=_without_further_calls(items),
        usage=_usage(response.get("usage")),
        model=response.get("model"),
    )


def _call(item: Mapping[str, Any], computer: ComputerTool | None) -> ToolCall:
    if item.get("type") == computers.CALL:
        return computers.call(item, computer.vocabulary if computer is not None else "")
    return tool_call(str(item["call_id"]), str(item["name"]), str(item.get("arguments") or ""))


def _parts(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [part for item in items if item.get("type") == "message" for part in listed(item, "content")]


def _without_further_calls(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    calls = 0
    for item in items:
        calls += item.get("type") in _CALLS
        if item.get("type") not in _CALLS or calls <= MAX_CALLS:
            kept.append(item)
    return kept


def _stop(response: Mapping[str, Any], refusal: str, calls: Sequence[ToolCall]) -> tuple[Stop, str]:
    status = str(response.get("status") or "")
    reason = str(inner(response, "incomplete_details").get("reason") or "")
    if reason == "content_filter" or refusal:
        return "refusal", reason or "refusal"
    if status == "incomplete":
        return ("length" if reason == "max_output_tokens" else "other"), reason
    return ("tool_calls" if calls else "end"), status


def _usage(found: Mapping[str, Any] | None) -> TokenUsage | None:
    if not found:
        return None
    cached = count(inner(found, "input_tokens_details"), "cached_tokens")
    return TokenUsage(
        input_tokens=max(0, count(found, "input_tokens") - cached),
        cached_input_tokens=cached,
        output_tokens=count(found, "output_tokens"),
        reasoning_tokens=count(inner(found, "output_tokens_details"), "reasoning_tokens"),
    )
