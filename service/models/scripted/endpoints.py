"""Which path is which endpoint; any prefix before it is accepted."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from service.domain.models import TokenUsage
from service.models.scripted.conversation import Reply, Request
from service.models.scripted.dialects import chat, generate, messages, responses


class Wire(Protocol):
    """A module below ``dialects``."""

    def read(self, body: Mapping[str, Any], /) -> Request: ...
    def whole(self, reply: Reply, /) -> dict[str, Any]: ...
    def stream(self, reply: Reply, /) -> Iterator[bytes]: ...
    def error(self, status: int, message: str, /) -> dict[str, Any]: ...
    def stream_error(self, message: str, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    kind: str
    """``messages``, ``responses``, ``chat``, ``generate``, ``count_tokens``, ``embeddings`` …"""
    wire: Wire
    model: str = ""
    """Where the path names it."""
    streaming: bool = False
    """Where the path says so."""

    @property
    def converses(self) -> bool:
        return self.kind in {"messages", "responses", "chat", "generate"}

    def read(self, body: Mapping[str, Any]) -> Request:
        request = replace(self.wire.read(body), body=body)
        return replace(request, model=self.model, streaming=self.streaming) if self.kind == "generate" else request

    def told(self, usage: TokenUsage) -> TokenUsage:
        """Return what of ``usage`` the dialect can tell: Gemini has no figure for what is written to a cache."""
        if self.kind != "generate":
            return usage
        given = usage.input_tokens + usage.cache_write_tokens
        return usage.model_copy(update={"input_tokens": given, "cache_write_tokens": 0})


_FIXED = {
    "messages": ("messages", messages),
    "messages/count_tokens": ("count_tokens", messages),
    "responses": ("responses", responses),
    "chat/completions": ("chat", chat),
    "embeddings": ("embeddings", chat),
}
_GEMINI = re.compile(r"/models/([^:]{1,200}):(generateContent|streamGenerateContent|countTokens)$")


def find(path: str) -> Endpoint | None:
    """Return the endpoint of a POST to ``path``."""
    for end, (kind, module) in _FIXED.items():
        if path.endswith(f"/{end}"):
            return Endpoint(kind, cast(Wire, module))
    if (found := _GEMINI.search(path)) is None:
        return None
    kind = "count_gemini" if found.group(2) == "countTokens" else "generate"
    return Endpoint(kind, cast(Wire, generate), found.group(1), found.group(2) == "streamGenerateContent")
