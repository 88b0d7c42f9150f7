"""The hidden file of tests: what is asked, and what is expected. It never leaves the grader's process."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.domain.tasks import Strict

MAX_FILE_BYTES = 64 << 20
MAX_INPUT_BYTES = 4 << 20
"""What the launcher takes as standard input."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class TestItem(Strict):
    __test__ = False

    id: Annotated[str, Field(min_length=1, max_length=128)]
    kind: Literal["code", "text", "choice"] = "code"
    input: str = ""
    """Of ``code``: standard input. Of the others: what was shown, kept for people."""
    expected: str
    """Of ``code``: standard output. Of ``choice``: the right letter."""
    choices: list[str] = Field(default_factory=list[str], max_length=len(LETTERS))
    """Of ``choice``: the texts of A, B, C …"""
    points: float = Field(default=1, gt=0, le=1_000_000)

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if (self.kind == "choice") != (len(self.choices) >= 2):
            raise ValueError("two or more choices are given exactly for kind 'choice'")
        if self.kind == "choice" and self.expected.upper() not in LETTERS[: len(self.choices)]:
            raise ValueError("expected is the letter of a choice")
        if self.kind == "choice" and len(self.expected) != 1:
            raise ValueError("expected is one letter")
        if len(self.input) > MAX_INPUT_BYTES or len(self.input.encode()) > MAX_INPUT_BYTES:
            raise ValueError(f"an input is at most {MAX_INPUT_BYTES} bytes")
        return self


class TestsFile(Strict):
    __test__ = False

    tests: list[TestItem] = Field(min_length=1, max_length=10_000)
    passing_score: float | None = Field(default=None, ge=0)
    """Points from which the verdict says ``certified``."""

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Self:
        if len({t.id for t in self.tests}) != len(self.tests):
            raise ValueError("two tests have the same id")
        return self
