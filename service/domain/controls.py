"""Altered-work controls (PayWorthy, appendix C): deliverables made worse on purpose, to see whether graders notice."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from service.domain.regrades import Reference, RunChoice
from service.domain.tasks import Strict

MOST_RUNS = 500
"""Originals of one request."""
LABEL, OF, SEED, HOW = "control", "of", "control_seed", "control_how"
"""Labels of a control's run: its kind, the run whose work it stands beside, the seed, and what was done."""


class ControlKind(StrEnum):
    QUARTER = "quarter"
    """The first quarter of the run's own work: each text cut, of the other files the first quarter of their bytes."""
    OTHER_TASK = "other_task"
    """What was delivered for another task of the same category."""
    EMPTY = "empty"
    """Nothing."""
    WEAKER = "weaker"
    """What a weaker agent delivered for the same task."""


class _Asked(Strict):
    kinds: list[ControlKind] = Field(min_length=1, max_length=len(ControlKind))
    weaker: Reference | None = None
    """Id or label of the weaker agent; needed for kind ``weaker``, and for it only."""
    plan: Reference | None = None
    """Grading plan of originals and controls; null: each original's own. An original that it has not graded is graded."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    """Draws the other tasks. The same kind with the same seed of the same run is made once."""
    facet: Annotated[str, Field(min_length=1, max_length=128)] = "category"
    """Of a task: what ``other_task`` has in common with it."""
    accepted_from: float = Field(default=1.0, gt=0, le=1)
    """Least share of the points that makes a success."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(set(self.kinds)) != len(self.kinds):
            raise ValueError("a kind is named twice")
        if (ControlKind.WEAKER in self.kinds) != (self.weaker is not None):
            raise ValueError("weaker names the agent of kind 'weaker', and goes with it only")
        return self


class ControlsRequest(_Asked):
    """Which runs are to get which controls."""

    filter: RunChoice | None = None
    runs: Annotated[list[Reference], Field(min_length=1, max_length=MOST_RUNS)] | None = None

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        if (self.filter is None) == (self.runs is None):
            raise ValueError("either filter or runs says which runs are meant")
        return self


class ControlsSpec(_Asked):
    """The request with its runs found: what the operation does."""

    originals: Annotated[list[str], Field(min_length=1, max_length=MOST_RUNS)]
    """Ids."""
