"""Judges and their votes: who was asked, and the one opinion that came back."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import Field

from service.domain.models import TokenUsage
from service.domain.tasks import Name, Strict, canonical_digest

MOST_ASKS = 3
"""Answers that one vote may take: the first, and two more after answers that do not fit."""


class JudgeSpec(Strict):
    """A model as a judge, with everything that could change its opinion."""

    model: Name
    """Catalogue name."""
    effort: str | None = Field(default=None, max_length=32)
    """Null: nothing is sent."""
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    """Null: nothing is sent (models that take none)."""
    max_output_tokens: int = Field(default=16_384, ge=256, le=200_000)
    """Thinking included."""
    chat: bool = False
    """Of a model of dialect ``openai``: Chat Completions, which most other servers speak, in place of Responses."""

    @property
    def key(self) -> str:
        """Name of the judge among others of the same model."""
        return f"{self.model}#{canonical_digest(self.model_dump(mode='json'))[:8]}"


class VoteState(StrEnum):
    VALID = "valid"
    INVALID = "invalid"
    """No answer of this vote's fitted the schema. It is not an opinion and is never guessed at."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One opinion of one judge. ``content`` is the method's own, empty unless the vote is valid."""

    judge: str
    """Key of the judge."""
    item: str
    """What it is about within the grading: a rubric's index, empty for the whole."""
    n: int
    """From 1."""
    state: VoteState
    content: dict[str, Any] = field(default_factory=dict[str, Any])
    cause: str | None = None
    """Why it is invalid, by the last answer."""
    asks: int = 1
    model: str | None = None
    """As the provider reports it."""
    template: str = ""
    """Name@version of the prompt."""
    template_sha256: str | None = None
    rendered_sha256: str | None = None
    """Of what was asked last: a blob of JSON {system, text, images}."""
    usage: TokenUsage | None = None
    """Of all its answers; null where one is unknown."""
    took_s: float | None = None
