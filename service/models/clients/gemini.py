"""Gemini streamGenerateContent over the official SDK."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

import httpx2
from google import genai
from google.genai import errors, types

from service.domain.models import Dialect, TokenUsage
from service.models.clients.computers import generate as computers
from service.models.clients.computers.native import check_native
from service.models.clients.reaching import (
    ADDRESS,
    MAX_CALLS,
    TIMEOUT_S,
    Size,
    answer_cut,
    count,
    headers_of,
    http_client,
    inner,
    listed,
    refused,
    transport_errors,
)
from service.models.messages import (
    Answer,
    Ask,
    ComputerTool,
    GatewayAway,
    Image,
    Reach,
    Stop,
    ToolCall,
    ToolResult,
    Turn,
    UserTurn,
)

_STOPS: dict[str, Stop] = {"STOP": "end", "MAX_TOKENS": "length"}
_REFUSALS = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"})


def connect(reach: Reach) -> "GeminiClient":
    return GeminiClient(reach)


class GeminiClient:
    """See :class:`service.models.messages.ModelClient`."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._http: httpx2.AsyncClient = http_client(reach)
        self._answers: dict[asyncio.Task[Any] | None, list[httpx2.Response]] = {}
        """By the task that asks: one client serves many at once."""
        self._http.event_hooks = {"response": [self._note]}
        options = types.HttpOptions(
            base_url=ADDRESS,
            timeout=int(TIMEOUT_S * 1000),
            httpx_async_client=self._http,
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        self._sdk = genai.Client(vertexai=False, api_key=reach.token, http_options=options)

    async def close(self) -> None:
        await self._sdk.aio.aclose()
        await self._http.aclose()

    async def _note(self, answer: httpx2.Response) -> None:
        self._answers.setdefault(asyncio.current_task(), []).append(answer)

    async def ask(self, ask: Ask) -> Answer:
        try:
            return await self._ask(ask)
        finally:
            # After an error inside a stream the SDK leaves it to the garbage collector.
            for answer in self._answers.pop(asyncio.current_task(), []):
                await answer.aclose()

    async def _ask(self, ask: Ask) -> Answer:
        contents, config = request_parts(self._reach, ask)
        gathered = Gathered(ask)
        with transport_errors():
            try:
                stream = await self._sdk.aio.models.generate_content_stream(
                    model=self._reach.upstream_id, contents=contents, config=config
                )
                async with aclosing(cast("AsyncGenerator[types.GenerateContentResponse]", stream)) as chunks:
                    async for chunk in chunks:
                        gathered.take(chunk.model_dump(mode="json", by_alias=True, exclude_none=True, warnings=False))
            except errors.APIError as error:
                if cast("Any", error).response.status_code == 200:  # said inside the stream
                    raise answer_cut(error) from error
                raise refused(error.code, str(error), str(error.message)) from error
        if not gathered.ended:
            raise GatewayAway("answer_cut", "the stream ended before the answer did")
        return gathered.answer()


def request_parts(reach: Reach, ask: Ask) -> tuple[list[Any], types.GenerateContentConfig]:
    """Return contents and configuration as the SDK takes them. Raises Invalid ``vocabulary_not_native``."""
    config: dict[str, Any] = {"automatic_function_calling": {"disable": True}}
    if ask.system:
        config["system_instruction"] = ask.system
    if tools := _tools(ask):
        config["tools"] = tools
    if limit := ask.max_output_tokens or reach.max_output_tokens:
        config["max_output_tokens"] = limit
    if ask.temperature is not None:
        config["temperature"] = ask.temperature
    if ask.effort is not None:
        config["thinking_config"] = {"thinking_level": ask.effort.upper(), "include_thoughts": True}
    if headers := headers_of(ask):
        config["http_options"] = {"headers": headers}
    return _contents(ask), types.GenerateContentConfig.model_validate(config)


def _tools(ask: Ask) -> list[dict[str, Any]]:
    declared = [{"name": t.name, "description": t.description, "parametersJsonSchema": t.parameters} for t in ask.tools]
    computer = check_native(ask.computer, Dialect.GEMINI)
    own = [computers.entry(computer)] if computer is not None else []
    return [*own, *([{"functionDeclarations": declared}] if declared else [])]


def _contents(ask: Ask) -> list[types.Content]:
    contents: list[types.Content] = []
    answer: Answer | None = None
    for turn in ask.turns:
        answer = turn if isinstance(turn, Answer) else answer
        content = _content(turn, computers.names(answer), ask.computer)
        if content["parts"]:
            contents.append(types.Content.model_validate(content))
    return contents


def _content(turn: Turn, names: Mapping[str, str], computer: ComputerTool | None) -> dict[str, Any]:
    if isinstance(turn, Answer):
        return {"role": "model", "parts": turn.items}
    if isinstance(turn, UserTurn):
        return {"role": "user", "parts": [{"text": turn.text}, *_images(turn.images)]}
    parts: list[dict[str, Any]] = []
    for one in turn.results:
        if computers.is_result(one):
            parts.append(
                {"functionResponse": _with_id(one, computers.result(one, names.get(one.id, one.name), computer))}
            )
        else:
            parts += [{"functionResponse": _response(one)}, *_images(one.images)]
    return {"role": "user", "parts": parts}


def _response(one: ToolResult) -> dict[str, Any]:
    return _with_id(one, {"name": one.name, "response": {"error" if one.is_error else "output": one.text}})


def _with_id(one: ToolResult, response: dict[str, Any]) -> dict[str, Any]:
    return response if one.id.startswith(_OURS) else {**response, "id": one.id}


def _images(images: Sequence[Image]) -> list[dict[str, Any]]:
    return [{"inlineData": {"mimeType": image.media_type, "data": image.data}} for image in images]


_OURS = "unnamed-"
"""Ids that we gave to calls that came without one; the provider is not told of them."""


class Gathered:
    """One answer, from the chunks of its stream."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._size = Size()
        self._parts: list[dict[str, Any]] = []
        self._stop = ""
        self._blocked = ""
        self._usage: dict[str, Any] | None = None
        self._model: str | None = None

    @property
    def ended(self) -> bool:
        return bool(self._stop or self._blocked)

    def take(self, chunk: Mapping[str, Any]) -> None:
        self._model = chunk.get("modelVersion") or self._model
        self._usage = chunk.get("usageMetadata") or self._usage
        self._blocked = str(inner(chunk, "promptFeedback").get("blockReason") or self._blocked)
        for candidate in listed(chunk, "candidates")[:1]:
            self._stop = str(candidate.get("finishReason") or self._stop)
            for part in listed(inner(candidate, "content"), "parts"):
                self._part(part)

    def _part(self, part: dict[str, Any]) -> None:
        self._size.add(str(part))
        last = self._parts[-1] if self._parts else {}
        plain = {"text", "thought"}
        # Pieces of one text; what carries a signature stays as it came.
        if (
            "text" in part
            and part.keys() <= plain
            and last.keys() == part.keys()
            and last.get("thought") == part.get("thought")
        ):
            last["text"] += part["text"]
        elif part:
            self._parts.append(dict(part))

    def answer(self) -> Answer:
        calls: list[ToolCall] = []
        items: list[dict[str, Any]] = []
        for part in self._parts:
            call: dict[str, Any] | None = part.get("functionCall")
            if call is None:
                items.append(part)
            elif len(calls) < MAX_CALLS:
                items.append(part)
                id = str(call.get("id") or f"{_OURS}{len(calls)}")
                calls.append(self._call(id, call))
        stop: Stop = "refusal" if self._blocked or self._stop in _REFUSALS else _STOPS.get(self._stop, "other")
        texts = [(bool(p.get("thought")), str(p["text"])) for p in items if "text" in p]
        return Answer(
            text="".join(text for thought, text in texts if not thought),
            thinking="".join(text for thought, text in texts if thought),
            calls=calls,
            stop="tool_calls" if calls and stop == "end" else stop,
            stop_detail=self._blocked or self._stop,
            items=items,
            usage=_usage(self._usage),
            model=self._model,
        )

    def _call(self, id: str, found: Mapping[str, Any]) -> ToolCall:
        name, computer = str(found["name"]), self._ask.computer
        if computer is not None and computers.is_call(name, self._ask):
            return computers.call(id, found, computer.vocabulary)
        return ToolCall(id=id, name=name, arguments=inner(found, "args"))


def _usage(found: Mapping[str, Any] | None) -> TokenUsage | None:
    if not found:
        return None
    cached, thoughts = count(found, "cachedContentTokenCount"), count(found, "thoughtsTokenCount")
    return TokenUsage(
        input_tokens=max(0, count(found, "promptTokenCount") + count(found, "toolUsePromptTokenCount") - cached),
        cached_input_tokens=cached,
        output_tokens=count(found, "candidatesTokenCount") + thoughts,
        reasoning_tokens=thoughts,
    )
