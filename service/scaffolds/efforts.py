"""Reasoning effort: what the agent asks for, against what its model accepts and its program can say (NEEDS A5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from service.domain.agents import AgentSettings
from service.domain.errors import Invalid
from service.scaffolds.contract import ModelChoice

DEFAULT, MOST = "default", "max"


@dataclass(frozen=True, slots=True)
class Effort:
    asked: str
    used: str | None
    """What is sent; null: nothing is, and the provider's own default holds."""

    def provenance(self) -> dict[str, Any]:
        return {"effort": self.used, "effort_asked": self.asked}


def resolve(settings: AgentSettings, model: ModelChoice, program: Sequence[str]) -> Effort:
    """Return the effort to send. ``program``: the names that the program can say.

    ``max`` is the greatest that both know, or nothing where the model or the program takes none. Raises Invalid
    ``unsupported_effort`` for a name that one of them does not know.
    """
    both = [name for name in model.efforts if name in program]
    asked = settings.effort
    if asked == DEFAULT:
        return Effort(asked, None)
    # A model may have an effort that is itself called "max".
    if asked == MOST:
        return Effort(asked, both[-1] if both else None)
    if asked not in both:
        known = ", ".join(both) or "none"
        detail = f"effort {asked!r} is not known to both model {model.name} and the program; known to both: {known}"
        raise Invalid("unsupported_effort", detail, efforts=both)
    return Effort(asked, asked)
