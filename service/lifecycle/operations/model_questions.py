"""What a model is asked to find out what it can do, in each dialect's own words. Pure."""

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from service.domain.models import Dialect, ModelSpec

OUTPUT_TOKENS = 512
"""Enough for a short thought before the answer."""
_PING = "Reply with the word pong."
_CALL = "Call the tool add with a=2 and b=3."
_LOOK = "Which colour has this picture? One word."
_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


@dataclass(frozen=True, slots=True)
class Question:
    name: str
    """``stream``, ``tools``, ``image``, ``responses``, ``effort:<name>``."""
    path: str
    body: Mapping[str, Any]
    streaming: bool = False
    wants: str = ""
    """A key that the answer's JSON must have somewhere; empty: any answer will do."""


def questions(spec: ModelSpec) -> list[Question]:
    """Return what is asked, the most important first; none for a private protocol."""
    return [*_ASKED.get(spec.dialect, _none)(spec)]


def found_usage(texts: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the last block of usage in an answer's JSON values."""
    blocks = [block for value in texts for key in ("usage", "usageMetadata") for block in _under(value, key)]
    filled = [cast("dict[str, Any]", block) for block in blocks if isinstance(block, dict) and block]
    return filled[-1] if filled else None


def has_key(values: list[dict[str, Any]], key: str) -> bool:
    return any(block not in (None, [], "") for value in values for block in _under(value, key))


def json_values(data: bytes) -> list[dict[str, Any]]:
    """Return the objects of a JSON answer or of a stream's events; what is no JSON is left out."""
    text = data.decode(errors="replace")
    lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")] or [text]
    found: list[dict[str, Any]] = []
    for line in lines:
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(cast("dict[str, Any]", value))
    return found


def _under(value: Any, key: str, depth: int = 0) -> Iterator[Any]:
    if depth > 12:
        return
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        if key in items:
            yield items[key]
        for inner in items.values():
            yield from _under(inner, key, depth + 1)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _under(inner, key, depth + 1)


def _none(spec: ModelSpec) -> Iterator[Question]:
    del spec
    yield from ()


def _anthropic(spec: ModelSpec) -> Iterator[Question]:
    def ask(name: str, content: Any, *, wants: str = "", streaming: bool = False, **more: Any) -> Question:
        body = {"model": spec.upstream_id, "max_tokens": OUTPUT_TOKENS, "stream": streaming, **more}
        body["messages"] = [{"role": "user", "content": content}]
        return Question(name, "/anthropic/v1/messages", body, streaming, wants)

    tool = {"name": "add", "description": "Adds two numbers.", "input_schema": _PARAMETERS}
    source = {"type": "base64", "media_type": "image/png", "data": picture()}
    yield ask("stream", _PING, streaming=True, wants="text")
    yield ask("tools", _CALL, wants="input", tools=[tool])
    yield ask("image", [{"type": "image", "source": source}, {"type": "text", "text": _LOOK}], wants="text")
    for effort in spec.efforts:
        yield ask(f"effort:{effort}", _PING, output_config={"effort": effort})


def _openai(spec: ModelSpec) -> Iterator[Question]:
    # Newer models of OpenAI refuse the old name, others know the old one only.
    bound = "max_completion_tokens" if spec.provider == "openai" else "max_tokens"

    def ask(name: str, content: Any, *, wants: str = "", streaming: bool = False, **more: Any) -> Question:
        body = {"model": spec.upstream_id, bound: OUTPUT_TOKENS, "stream": streaming, **more}
        body["messages"] = [{"role": "user", "content": content}]
        return Question(name, "/v1/chat/completions", body, streaming, wants)

    function = {"name": "add", "description": "Adds two numbers.", "parameters": _PARAMETERS}
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture()}"}}
    yield ask("stream", _PING, streaming=True, wants="content")
    yield ask("tools", _CALL, wants="tool_calls", tools=[{"type": "function", "function": function}])
    yield ask("image", [image, {"type": "text", "text": _LOOK}], wants="content")
    body = {"model": spec.upstream_id, "input": _PING, "max_output_tokens": OUTPUT_TOKENS}
    yield Question("responses", "/v1/responses", body, wants="output")
    for effort in spec.efforts:
        yield ask(f"effort:{effort}", _PING, reasoning_effort=effort)


def _gemini(spec: ModelSpec) -> Iterator[Question]:
    def ask(name: str, parts: Any, *, wants: str = "text", streaming: bool = False, **more: Any) -> Question:
        thinking = more.pop("thinking", None)
        config = {"maxOutputTokens": OUTPUT_TOKENS} | ({"thinkingConfig": thinking} if thinking else {})
        body = {"contents": [{"role": "user", "parts": parts}], "generationConfig": config, **more}
        method = "streamGenerateContent?alt=sse" if streaming else "generateContent"
        return Question(name, f"/v1beta/models/{spec.upstream_id}:{method}", body, streaming, wants)

    function = {"name": "add", "description": "Adds two numbers.", "parameters": _PARAMETERS}
    image = {"inlineData": {"mimeType": "image/png", "data": picture()}}
    yield ask("stream", [{"text": _PING}], streaming=True)
    yield ask("tools", [{"text": _CALL}], wants="functionCall", tools=[{"functionDeclarations": [function]}])
    yield ask("image", [image, {"text": _LOOK}])
    for effort in spec.efforts:
        yield ask(f"effort:{effort}", [{"text": _PING}], wants="", thinking={"thinkingLevel": effort})


def picture() -> str:
    """Return a red square of 32 pixels as base64 of a PNG."""
    rows = b"".join(b"\x00" + b"\xff\x00\x00" * 32 for _ in range(32))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(png).decode()


_ASKED = {Dialect.ANTHROPIC: _anthropic, Dialect.OPENAI: _openai, Dialect.GEMINI: _gemini}
