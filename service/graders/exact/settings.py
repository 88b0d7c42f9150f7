"""Settings of method ``exact``."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.domain.paths import RelativePath
from service.domain.tasks import Strict

AnswerType = Literal["int", "float", "string", "bool", "list", "choice"]


class Tolerance(Strict):
    """A number passes within the larger of both."""

    absolute: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    relative: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    """Fraction of the expected value's size."""


FLOAT_DEFAULT = Tolerance(relative=1e-9)
"""Without a stated tolerance two floats are equal up to what printing and reading them back may change."""


class AnswerRule(Strict):
    id: Annotated[str, Field(min_length=1, max_length=128)]
    type: AnswerType
    tolerance: Tolerance | None = None
    """For ``float``, and for floats inside a ``list``."""
    points: float = Field(default=1, gt=0, le=1_000_000)
    case_sensitive: bool = True
    """For ``string``, ``choice`` and strings inside a ``list``."""
    ordered: bool = True
    """For ``list``: false compares as a multiset."""
    choices: list[str] = Field(default_factory=list[str], max_length=256)

    @model_validator(mode="after")
    def _choices_belong_to_choice(self) -> Self:
        if (self.type == "choice") != bool(self.choices):
            raise ValueError("choices are given exactly for type 'choice'")
        return self


class Expected(Strict):
    hidden: RelativePath
    """Hidden asset: a JSON object, answer id → expected value."""


class ExactSettings(Strict):
    file: RelativePath = "output/answers.json"
    """File of the deliverable: a JSON object, answer id → given value; other keys are ignored."""
    expected: Expected
    answers: list[AnswerRule] = Field(min_length=1, max_length=1000)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Self:
        if len({a.id for a in self.answers}) != len(self.answers):
            raise ValueError("two answers have the same id")
        return self
