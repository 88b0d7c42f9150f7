"""What all dialects have in common: a request as the script sees it, and the answer before it has a wire format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from service.domain.models import TokenUsage
from service.models.scripted.scenario import Stop


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool that a request offers."""

    name: str
    kind: Literal["function", "custom"] = "function"
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Request:
    """What an agent asks, whatever the dialect."""

    model: str
    streaming: bool
    offers: Sequence[Offer] = ()
    code_mode: bool = False
    """Codex: the tools are called from JavaScript inside the custom tool ``exec``."""
    results: Sequence[str] = ()
    """Ids of the calls whose results the request carries."""
    answers: int = 0
    """Answers of the model in the conversation so far."""
    last_user: str = ""
    submit_by_command: bool = False
    """mini-swe-agent: the end is a command that prints a fixed line."""
    wants_usage: bool = True
    """Chat Completions tells a stream's usage only when asked."""
    schema: Mapping[str, Any] | None = None
    """JSON schema that the answer's text must follow."""
    computers: Sequence[str] = ()
    """Vocabularies of the computer tool that is offered."""
    failed: bool = False
    """One of the results since the last answer is an error."""
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """As it came."""

    @property
    def acts(self) -> bool:
        """Tell whether anything is offered that can be called."""
        return bool(self.offers or self.computers) or self.code_mode


@dataclass(frozen=True, slots=True)
class Use:
    """A tool call in an answer."""

    id: str
    name: str
    arguments: dict[str, Any] | str
    """A string goes out as it is."""
    custom: bool = False
    computer: bool = False
    """OpenAI: an item of its own kind, whose fields are the arguments."""
    checks: Sequence[Mapping[str, Any]] = ()
    toolset: str = ""
    """Anthropic: the set of tools that it is a member of."""


@dataclass(frozen=True, slots=True)
class Reply:
    id: str
    model: str
    text: str
    uses: Sequence[Use]
    usage: TokenUsage
    thinking: str = ""
    stop: Stop = "end"
    turn: int = 0
    piece_chars: int = 24
    tells_usage: bool = True

    def pieces(self, text: str) -> list[str]:
        return [text[at : at + self.piece_chars] for at in range(0, len(text), self.piece_chars)]
