"""Settings of method ``integrity``."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.domain.paths import RelativePath
from service.domain.tasks import Strict

Check = Literal["opens", "complete", "non_empty", "right_type"]
Pattern = Annotated[RelativePath, Field(max_length=500)]
"""A file name, or a path below the workspace or below a collect root; ``*``, ``?`` and ``[…]`` stay within a component."""
MAY_BE_EMPTY = ("__init__.py", "py.typed", ".gitkeep", ".keep", ".nojekyll")


class IntegritySettings(Strict):
    checks: list[Check] = Field(default_factory=lambda: ["opens", "complete", "non_empty", "right_type"], min_length=1)
    expected: list[Pattern] = Field(default_factory=list[str], max_length=200)
    """Files that must be there."""
    from_instruction: bool = True
    """And those that the instruction names, other than the task's visible files."""
    may_be_empty: list[Pattern] = Field(default_factory=lambda: [*MAY_BE_EMPTY], max_length=200)
    ignore: list[Pattern] = Field(default_factory=list[str], max_length=200)
    """Delivered files that ``opens``, ``non_empty`` and ``right_type`` leave out."""

    @model_validator(mode="after")
    def _checks_are_unique(self) -> Self:
        if len(set(self.checks)) != len(self.checks):
            raise ValueError("a check is named twice")
        return self
