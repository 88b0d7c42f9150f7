"""Settings that every method with judges has."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.domain.judging import JudgeSpec
from service.domain.tasks import Strict

TEMPLATE = r"^[a-z][a-z0-9_]{0,63}@[1-9][0-9]{0,5}$"


class JudgingSettings(Strict):
    judges: Annotated[list[JudgeSpec], Field(max_length=9)] = Field(default_factory=list[JudgeSpec])
    """A task may leave them to the plan; a grading without any ends as ``judges_missing``."""
    votes: int = Field(default=1, ge=1, le=9)
    """Of each judge."""
    prompt: Annotated[str, Field(pattern=TEMPLATE)] = "none@1"
    """Name@version of a prompt that this method ships."""
    prompt_text: str | None = Field(default=None, max_length=100_000)
    """A prompt of one's own in its place (docs/grading.md, "Prompts")."""
    reading: Literal["full", "opening"] = "full"
    opening_chars: int = Field(default=8000, ge=100, le=200_000)
    """What ``opening`` shows: the first characters of all texts in the order of the files, and no pictures."""
    evidence_chars: int = Field(default=400_000, ge=1000, le=1_500_000)
    """Most characters of delivered text in one question; beyond it each file's head and tail are shown."""
    images: Literal["auto", "always", "never"] = "auto"
    """``auto``: where the criteria ask for looking."""
    canary: bool = True
    """Ask in every question for something known to be false; who calls it true gives no valid vote."""
    vary_order: bool = True
    """Files and criteria come in another order from the second vote on."""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        keys = [judge.key for judge in self.judges]
        if len(set(keys)) != len(keys):
            raise ValueError("a judge is named twice")
        return self
