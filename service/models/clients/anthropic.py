"""Anthropic Messages, streamed, over the official SDK."""

from collections.abc import Mapping, Sequence
from typing import Any

import anthropic

from service.domain.models import Dialect, TokenUsage
from service.models.clients.computers import messages as computers
from service.models.clients.computers.native import check_native
from service.models.clients.reaching import (
    ADDRESS,
    MAX_CALLS,
    TIMEOUT_S,
    Size,
    answer_cut,
    connection_error,
    count,
    headers_of,
    http_client,
    inner,
    refused,
    tool_call,
    transport_errors,
)
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

DEFAULT_MAX_TOKENS = 16_000
_STOPS: dict[str, Stop] = {
    "end_turn": "end", "stop_sequence": "end", "pause_turn": "end", "tool_use": "tool_calls", "max_tokens": "length",
    "model_context_window_exceeded": "length", "refusal": "refusal",
}  # fmt: skip
_CACHED = {"cache_control": {"type": "ephemeral"}}


def connect(reach: Reach) -> "AnthropicClient":
    return AnthropicClient(reach)


class AnthropicClient:
    """See :class:`service.models.messages.ModelClient`."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._sdk = anthropic.AsyncAnthropic(
            api_key=reach.token, base_url=ADDRESS, max_retries=0, timeout=TIMEOUT_S, http_client=http_client(reach)
        )

    async def close(self) -> None:
        await self._sdk.close()

    async def ask(self, ask: Ask) -> Answer:
        body = request_body(self._reach, ask) | {"extra_headers": headers_of(ask)}
        gathered = Gathered(ask.computer)
        with transport_errors():
            try:
                async with await self._begun(body, computers.beta(ask.computer)) as stream:
                    async for event in stream:
                        gathered.take(event.model_dump(mode="json", exclude_unset=True, warnings=False))
            except anthropic.APIConnectionError as error:
                raise connection_error(error) from error
            except anthropic.APIStatusError as error:
                if error.response.status_code == 200:  # said inside the stream
                    raise answer_cut(error) from error
                raise refused(error.status_code, error.body, error.message) from error
            except anthropic.APIError as error:
                raise ModelRefused("bad_answer", str(error)[:500], http_status=200) from error
        if not gathered.ended:
            raise GatewayAway("answer_cut", "the stream ended before the answer did")
        return gathered.answer()

    async def _begun(self, body: Mapping[str, Any], beta: str | None) -> Any:
        if beta is None:
            return await self._sdk.messages.create(**body, stream=True)
        return await self._sdk.beta.messages.create(**body, stream=True, betas=[beta])


def request_body(reach: Reach, ask: Ask) -> dict[str, Any]:
    """Return the request as the SDK takes it. Raises Invalid ``vocabulary_not_native``."""
    body: dict[str, Any] = {
        "model": reach.upstream_id,
        "max_tokens": ask.max_output_tokens or reach.max_output_tokens or DEFAULT_MAX_TOKENS,
        "messages": _messages(ask.turns),
    }
    if ask.system:
        body["system"] = [{"type": "text", "text": ask.system, **_CACHED}]
    tools = [{"name": t.name, "description": t.description, "input_schema": t.parameters} for t in ask.tools]
    if (computer := check_native(ask.computer, Dialect.ANTHROPIC)) is not None:
        tools.append(computers.entry(computer))
    if tools:
        body["tools"] = tools
    if ask.effort is not None:  # with thinking on, no temperature may be given
        body |= {"output_config": {"effort": ask.effort}, "thinking": {"type": "adaptive"}}
    elif ask.temperature is not None:
        body["extra_body"] = {"temperature": ask.temperature}  # the SDK has no argument for it any more
    return body


def _messages(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in turns:
        role = "assistant" if isinstance(turn, Answer) else "user"
        content = _content(turn)
        if content and messages and messages[-1]["role"] == role:
            messages[-1]["content"] += content
        elif content:
            messages.append({"role": role, "content": content})
    if messages and messages[-1]["role"] == "user":
        messages[-1]["content"][-1] = {**messages[-1]["content"][-1], **_CACHED}
    return messages


def _content(turn: Turn) -> list[dict[str, Any]]:
    if isinstance(turn, Answer):
        # The API refuses blank text, also where it was its own.
        return [item for item in turn.items if item.get("type") != "text" or str(item.get("text", "")).strip()]
    if isinstance(turn, UserTurn):
        return [*_images(turn), {"type": "text", "text": turn.text}] if turn.text.strip() else _images(turn)
    # The API takes nothing but text in a result that is an error: its pictures come after the results.
    late = [image for one in turn.results if one.is_error for image in _images(one)]
    return [*(_result(one) for one in turn.results), *late]


def _images(holder: UserTurn | ToolResult) -> list[dict[str, Any]]:
    return [
        {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}
        for image in holder.images
    ]


def _result(one: ToolResult) -> dict[str, Any]:
    images = [] if one.is_error else _images(one)
    said = one.text if one.text.strip() or images else "(no output)"
    content = [*([{"type": "text", "text": said}] if said.strip() else []), *images]
    made = {"type": "tool_result", "tool_use_id": one.id, "content": content, "is_error": one.is_error}
    return made | computers.of_set(one)


class Gathered:
    """One answer, from the events of its stream."""

    def __init__(self, computer: ComputerTool | None = None) -> None:
        self.ended = False
        self._computer = computer
        self._size = Size()
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._usage: dict[str, Any] = {}
        self._stop = ""
        self._model: str | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == "message_start":
            message = event.get("message", {})
            self._model = message.get("model")
            self._usage |= message.get("usage") or {}
        elif kind == "content_block_start":
            self._blocks[int(event["index"])] = dict(event["content_block"])
        elif kind == "content_block_delta":
            self._delta(int(event["index"]), event["delta"])
        elif kind == "message_delta":
            self._stop = str(event["delta"].get("stop_reason") or self._stop)
            told = inner(event, "usage")
            self._usage |= {key: value for key, value in told.items() if value is not None}
        elif kind == "message_stop":
            self.ended = True

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        for kind in ("text", "thinking", "signature"):
            if delta.get("type") == f"{kind}_delta":
                self._size.add(delta[kind])
                block[kind] = f"{block.get(kind) or ''}{delta[kind]}"
        if delta.get("type") == "input_json_delta":
            self._size.add(delta["partial_json"])
            self._inputs[index] = self._inputs.get(index, "") + delta["partial_json"]

    def answer(self) -> Answer:
        calls: list[ToolCall] = []
        items: list[dict[str, Any]] = []
        for index, block in sorted(self._blocks.items()):
            if block.get("type") != "tool_use":
                items.append(block)
            elif len(calls) < MAX_CALLS:
                call, given = self._call(block, self._inputs.get(index, ""))
                calls.append(call)
                # Given back as the API takes it: an input that was no object becomes an empty one.
                items.append({**block, "input": given})
        return Answer(
            text="".join(str(b.get("text", "")) for b in items if b.get("type") == "text"),
            thinking="".join(str(b.get("thinking", "")) for b in items if b.get("type") == "thinking"),
            calls=calls,
            stop=_STOPS.get(self._stop, "other"),
            stop_detail=self._stop,
            items=items,
            usage=_usage(self._usage),
            model=self._model,
        )

    def _call(self, block: Mapping[str, Any], written: str) -> tuple[ToolCall, dict[str, Any]]:
        if self._computer is not None and computers.is_call(block, self._computer):
            return computers.call(block, written, self._computer)
        call = tool_call(str(block["id"]), str(block["name"]), written)
        return call, call.arguments or {}


def _usage(found: Mapping[str, Any]) -> TokenUsage | None:
    if "output_tokens" not in found:
        return None
    return TokenUsage(
        input_tokens=count(found, "input_tokens"),
        cached_input_tokens=count(found, "cache_read_input_tokens"),
        cache_write_tokens=count(found, "cache_creation_input_tokens"),
        output_tokens=count(found, "output_tokens"),
    )
