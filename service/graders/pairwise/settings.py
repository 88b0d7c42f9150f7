"""Settings of method ``pairwise``."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from service.domain.paths import RelativePath
from service.domain.preferences import Combination
from service.graders.judging.settings import TEMPLATE, JudgingSettings


def _without_slash(value: Any) -> Any:
    return value.removesuffix("/") if isinstance(value, str) else value


class PairwiseSettings(JudgingSettings):
    votes: int = Field(default=2, ge=2, le=8)
    """Of each judge, half of them in each order: an even number."""
    prompt: Annotated[str, Field(pattern=TEMPLATE)] = "pairwise@1"
    reference: Annotated[RelativePath, BeforeValidator(_without_slash)] = "reference"
    """Folder of the task's hidden files with the work to compare with; a slash at its end changes nothing."""
    combination: Combination = Combination.COMPLETION_THEN_QUALITY
    tie_break: bool = True
    """Where no choice has more than half of a judge's votes, ask once more in both orders: one further opinion, ``same``
    where the orders disagree."""
    quorum: int | None = Field(default=None, ge=1, le=9)
    """Judges that must have decided. Null: up to two judges all of them, else all but one."""

    @property
    def prefix(self) -> str:
        return f"{self.reference}/"

    @property
    def needed_judges(self) -> int:
        every = len(self.judges)
        return self.quorum if self.quorum is not None else every if every <= 2 else every - 1

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        if self.votes % 2:
            raise ValueError("votes is even: both orders are asked equally often")
        if self.judges and self.needed_judges > len(self.judges):
            raise ValueError("quorum is more than there are judges")
        return self
