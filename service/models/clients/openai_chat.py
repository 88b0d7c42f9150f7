"""OpenAI Chat Completions, streamed, over the official SDK: what most other providers speak too."""

from collections.abc import Mapping, Sequence
from typing import Any

import openai

from service.domain.models import Dialect, TokenUsage
from service.models.clients.computers.native import check_native
from service.models.clients.openai_errors import sdk_errors, sdk_for
from service.models.clients.reaching import MAX_CALLS, Size, count, headers_of, inner, listed, tool_call
from service.models.messages import Answer, Ask, GatewayAway, Image, Reach, Stop, Turn, UserTurn

_STOPS: dict[str, Stop] = {
    "stop": "end", "tool_calls": "tool_calls", "function_call": "tool_calls", "length": "length",
    "content_filter": "refusal",
}  # fmt: skip
_THINKING = ("reasoning_content", "reasoning")
"""Where providers put what they show of the model's thinking; given back as it came."""


def connect(reach: Reach) -> "ChatClient":
    return ChatClient(reach)


class ChatClient:
    """See :class:`service.models.messages.ModelClient`."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._sdk: openai.AsyncOpenAI = sdk_for(reach)

    async def close(self) -> None:
        await self._sdk.close()

    async def ask(self, ask: Ask) -> Answer:
        body = request_body(self._reach, ask)
        gathered = Gathered()
        with sdk_errors():
            async with await self._sdk.chat.completions.create(
                **body, extra_headers=headers_of(ask), stream=True
            ) as stream:
                async for chunk in stream:
                    gathered.take(chunk.model_dump(mode="json", exclude_unset=True))
            if gathered.ended:
                return gathered.answer()
        raise GatewayAway("answer_cut", "the stream ended before the answer did")


def request_body(reach: Reach, ask: Ask) -> dict[str, Any]:
    """Return the request as the SDK takes it. Raises Invalid ``vocabulary_not_native``: this API has no computer tool."""
    check_native(ask.computer, Dialect.OPENAI, chat=True)
    messages = [{"role": "system", "content": ask.system}] if ask.system else []
    for turn in ask.turns:
        messages += _messages(turn)
    body: dict[str, Any] = {
        "model": reach.upstream_id,
        "messages": messages,
        "stream_options": {"include_usage": True},
    }
    if ask.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in ask.tools
        ]
    if limit := ask.max_output_tokens or reach.max_output_tokens:
        # Reasoning models of OpenAI refuse the old name, many other servers do not know the new one.
        body["max_completion_tokens" if reach.reasoning else "max_tokens"] = limit
    if ask.effort is not None:
        body["reasoning_effort"] = ask.effort
    elif ask.temperature is not None:
        body["temperature"] = ask.temperature
    return body


def _messages(turn: Turn) -> list[dict[str, Any]]:
    if isinstance(turn, Answer):
        return turn.items
    if isinstance(turn, UserTurn):
        content: Any = [{"type": "text", "text": turn.text}, *_images(turn.images)] if turn.images else turn.text
        return [{"role": "user", "content": content}]
    results: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": one.id, "content": one.text or "(no output)"} for one in turn.results
    ]
    seen = [image for one in turn.results for image in one.images]
    if seen:  # a tool's message takes text only
        results.append({"role": "user", "content": [{"type": "text", "text": "The images:"}, *_images(seen)]})
    return results


def _images(images: Sequence[Image]) -> list[dict[str, Any]]:
    urls = [f"data:{image.media_type};base64,{image.data}" for image in images]
    return [{"type": "image_url", "image_url": {"url": url}} for url in urls]


class Gathered:
    """One answer, from the chunks of its stream."""

    def __init__(self) -> None:
        self._size = Size()
        self._texts: dict[str, str] = {}
        self._calls: dict[int, dict[str, str]] = {}
        self._stop = ""
        self._usage: dict[str, Any] | None = None
        self._model: str | None = None

    @property
    def ended(self) -> bool:
        return bool(self._stop)

    def take(self, chunk: Mapping[str, Any]) -> None:
        self._model = chunk.get("model") or self._model
        self._usage = chunk.get("usage") or self._usage
        for choice in listed(chunk, "choices")[:1]:
            self._stop = str(choice.get("finish_reason") or self._stop)
            self._delta(inner(choice, "delta"))

    def _delta(self, delta: Mapping[str, Any]) -> None:
        for key in ("content", "refusal", *_THINKING):
            piece = delta.get(key)
            if isinstance(piece, str) and piece:
                self._size.add(piece)
                self._texts[key] = self._texts.get(key, "") + piece
        for piece in listed(delta, "tool_calls"):
            function = inner(piece, "function")
            call = self._calls.setdefault(int(piece["index"]), {"id": "", "name": "", "arguments": ""})
            call["id"] = call["id"] or str(piece.get("id") or "")
            for key in ("name", "arguments"):
                text = str(function.get(key) or "")
                self._size.add(text)
                call[key] += text

    def answer(self) -> Answer:
        found = [call for _, call in sorted(self._calls.items())][:MAX_CALLS]
        for n, call in enumerate(found):
            call["id"] = call["id"] or f"call_{n}"
        message: dict[str, Any] = {"role": "assistant", "content": self._texts.get("content", ""), **self._kept()}
        if found:
            message["tool_calls"] = [
                {
                    "id": c["id"],
                    "type": "function",
                    "function": {"name": c["name"], "arguments": c["arguments"] or "{}"},
                }
                for c in found
            ]
        calls = [tool_call(call["id"], call["name"], call["arguments"]) for call in found]
        refusal = self._texts.get("refusal", "")
        stop: Stop = "refusal" if refusal else _STOPS.get(self._stop, "other")
        return Answer(
            text=self._texts.get("content", "") or refusal,
            thinking="".join(self._texts.get(key, "") for key in _THINKING),
            calls=calls,
            stop="tool_calls" if calls and stop == "end" else stop,
            stop_detail=self._stop,
            items=[message],
            usage=_usage(self._usage),
            model=self._model,
        )

    def _kept(self) -> dict[str, str]:
        return {key: self._texts[key] for key in ("refusal", *_THINKING) if key in self._texts}


def _usage(found: Mapping[str, Any] | None) -> TokenUsage | None:
    if not found:
        return None
    cached = count(inner(found, "prompt_tokens_details"), "cached_tokens")
    return TokenUsage(
        input_tokens=max(0, count(found, "prompt_tokens") - cached),
        cached_input_tokens=cached,
        output_tokens=count(found, "completion_tokens"),
        reasoning_tokens=count(inner(found, "completion_tokens_details"), "reasoning_tokens"),
    )
