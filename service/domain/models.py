"""Models: what a run can be given to think with, what a request to one took, and what that cost."""

from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.domain.tasks import Money, Name, Strict

HttpUrl = Annotated[str, Field(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$", max_length=2000)]


class Dialect(StrEnum):
    """The language of a provider's API."""

    ANTHROPIC = "anthropic"
    """Messages, count_tokens."""
    OPENAI = "openai"
    """Responses, Chat Completions, embeddings."""
    GEMINI = "gemini"
    """generateContent, streamGenerateContent."""
    OPAQUE = "opaque"
    """Bytes of a private protocol: calls and time are counted, tokens only by a registered JSONPath (NEEDS C8)."""


class Prices(Strict):
    """US dollars per million tokens; what is null is not known, never free."""

    input_usd: Money | None = None
    cached_input_usd: Money | None = None
    cache_write_usd: Money | None = None
    output_usd: Money | None = None
    per_call_usd: Money | None = None
    per_tool_use_usd: dict[str, Money] = Field(default_factory=dict[str, str], max_length=32)
    """Provider-side tool → dollars per use."""
    as_of: date
    """Day of the price list."""


class OpaqueUsage(Strict):
    """Where a private protocol's JSON answers say what a call took; JSONPath, each may be absent."""

    input_tokens: Annotated[str, Field(max_length=500)] | None = None
    output_tokens: Annotated[str, Field(max_length=500)] | None = None


class ModelSpec(Strict):
    """An entry of the model catalogue (NEEDS A5, A12, C4): what is measured with, and where it answers."""

    name: Name
    """Unique in the project; what agents name, e.g. ``anthropic/claude-sonnet-4-6``."""
    provider: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
    upstream_id: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\s\x00-\x1f]+$")]
    """The model's id in requests."""
    dialect: Dialect
    base_url: HttpUrl
    """Everything before the dialect's own path: ``https://api.anthropic.com``, ``https://api.openai.com/v1``."""
    vendor: Annotated[str, Field(max_length=80)] | None = None
    family: Annotated[str, Field(max_length=80)] | None = None
    released_on: date | None = None
    alias: bool = False
    """The id moves between releases; answers then report another one."""
    context_window: int | None = Field(default=None, ge=1)
    max_output_tokens: int | None = Field(default=None, ge=1)
    efforts: list[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]] = Field(
        default_factory=list[str], max_length=16
    )
    """Accepted reasoning efforts, least first; empty: the model takes none."""
    modalities: list[Literal["text", "image", "audio", "video", "pdf"]] = Field(default_factory=lambda: ["text"])
    prices: Prices | None = None
    """Null: the price list of ``genai-prices``; a model that it does not know costs null."""
    opaque_usage: OpaqueUsage | None = None
    max_concurrency: int | None = Field(default=None, ge=1, le=10_000)
    """Most requests at once of this deployment's gateway; it adapts downwards by itself on 429."""
    headers: dict[str, str] = Field(default_factory=dict[str, str], max_length=16)
    """Further headers for the upstream, e.g. a version; no credentials."""


class CostBasis(StrEnum):
    MEASURED = "measured"
    """From the provider's usage block, seen by the gateway."""
    DECLARED = "declared"
    """What a remote driver said (NEEDS C11)."""
    UNKNOWN = "unknown"


class TokenUsage(BaseModel):
    """Tokens of one request, or of many together. The kinds do not overlap but for ``reasoning_tokens``."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    input_tokens: int = Field(default=0, ge=0)
    """Neither read from a cache nor written to one."""
    cached_input_tokens: int = Field(default=0, ge=0)
    cache_write_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    """Reasoning included."""
    reasoning_tokens: int = Field(default=0, ge=0)
    """Of the output, where the provider tells them apart."""

    @property
    def total(self) -> int:
        return self.input_tokens + self.cached_input_tokens + self.cache_write_tokens + self.output_tokens

    def plus(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(**{name: getattr(self, name) + getattr(other, name) for name in type(self).model_fields})


class Cost(BaseModel):
    """Dollars of a request; ``usd`` is null where no price is known, never 0."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    usd: Decimal | None = None
    basis: CostBasis = CostBasis.UNKNOWN
    price_date: date | None = None
