"""One conversation with a model, in neutral words: what our own loops say and get, whatever the provider's dialect.

What a provider must see again unchanged (its thinking, signatures, tool calls) stays in ``Answer.items`` in its own
shape; the neutral fields beside it are for us. All of it is JSON, so that a journal can keep it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from service.domain.desktop import SafetyCheck
from service.domain.errors import Expected
from service.domain.models import Dialect, TokenUsage


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Image(_Value):
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    data: str
    """Base64."""


class ToolCall(_Value):
    id: str
    name: str
    arguments: dict[str, Any] | None
    """Null: what the model wrote is no JSON object; ``raw`` has it."""
    raw: str = ""
    vocabulary: str | None = None
    """Of a call of the provider's own computer tool: how ``arguments`` are read (``service.desktop.vocabularies``)."""
    checks: list[SafetyCheck] = Field(default_factory=list[SafetyCheck])
    """What the provider wants confirmed before it is done."""


class ToolResult(_Value):
    id: str
    name: str
    text: str
    is_error: bool = False
    images: list[Image] = Field(default_factory=list[Image])
    vocabulary: str | None = None
    """As of the call that it answers."""
    acknowledged: list[SafetyCheck] = Field(default_factory=list[SafetyCheck])
    """The call's checks that were confirmed."""


class UserTurn(_Value):
    role: Literal["user"] = "user"
    text: str
    images: list[Image] = Field(default_factory=list[Image])


class ResultsTurn(_Value):
    role: Literal["results"] = "results"
    results: list[ToolResult]


Stop = Literal["end", "tool_calls", "length", "refusal", "other"]


class Answer(_Value):
    """One answer, whole. As a turn of the conversation it is given back as ``items``."""

    role: Literal["assistant"] = "assistant"
    text: str = ""
    thinking: str = ""
    """What the provider shows of it."""
    calls: list[ToolCall] = Field(default_factory=list[ToolCall])
    stop: Stop = "end"
    stop_detail: str = ""
    """The provider's own word for ``stop``."""
    items: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """Provider-shaped: content blocks, output items, one message, or parts."""
    usage: TokenUsage | None = None
    model: str | None = None
    """As the provider reports it."""


Turn = UserTurn | Answer | ResultsTurn


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of an object."""


@dataclass(frozen=True, slots=True)
class ComputerTool:
    """The provider's own computer tool."""

    vocabulary: str
    """One of those that the model's dialect has."""
    width: int
    height: int
    """Pixels of the pictures that the model is sent."""
    environment: Literal["desktop", "browser"] = "desktop"
    zoom: bool = True


@dataclass(frozen=True, slots=True)
class Ask:
    """One request."""

    system: str
    turns: Sequence[Turn]
    tools: Sequence[ToolSpec] = ()
    max_output_tokens: int | None = None
    temperature: float | None = None
    effort: str | None = None
    """Resolved; null: nothing is sent."""
    computer: ComputerTool | None = None
    subject: str | None = None
    """What it is for, in the ledger: a grading's id. For the gateway only, which takes it from our own processes."""
    replay_of: str | None = None
    """Grading whose recording answers, in the provider's place. For the gateway only, as ``subject`` is."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How a client of ours gets to a model: always through the gateway's local side."""

    socket: str
    """Path of the gateway's Unix socket."""
    token: str = field(repr=False)
    upstream_id: str
    dialect: Dialect
    max_output_tokens: int | None = None
    reasoning: bool = False
    """The model takes reasoning efforts."""
    chat: bool = False
    """Of dialect ``openai``: Chat Completions in place of Responses."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """For the gateway, e.g. the purpose of the requests."""


class ModelRefused(Expected):
    """The request ended without an answer, for good: refused (4xx), or failed after all the gateway's retries (5xx).

    ``type`` is ``budget_exhausted``, ``context_too_long``, ``bad_answer``, ``not_recorded`` (a replay that goes another way than
    its recording), ``provider_failed`` (its own errors, or its word on our key) or ``model_refused``; field ``http_status``.
    """

    status = 502


UNAVAILABLE = "provider_unavailable"


class GatewayAway(Expected):
    """The gateway does not answer, or went away in the middle: says nothing about the request.

    ``provider_unavailable``: it does, and has waited for the provider as long as it may. Nobody's answer, and so never a
    score: whoever asks fails as infrastructure does, or asks again later.
    """

    status = 503


class ModelClient(Protocol):
    async def ask(self, ask: Ask) -> Answer:
        """Return the whole answer. Raises ModelRefused, GatewayAway."""
        ...

    async def close(self) -> None: ...
