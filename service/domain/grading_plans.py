"""Grading plans: a named, versioned choice of methods with their judges, prompts and votes, and how they make one verdict."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from service.domain.tasks import GraderSpec, Name, Strict

TASK_PLAN = "task@1"
"""The task's own graders as they stand; every project has it."""


class Combine(StrEnum):
    """How the primary gradings of one round become the run's score."""

    SUM = "sum"
    """Sum of scores over sum of max_scores."""
    MEAN = "mean"
    """Mean of the fractions, each method alike."""
    MIN = "min"
    """The lowest fraction: every method must be content."""


class PlanGrader(Strict):
    """A method of the plan."""

    method: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    settings: dict[str, Any] = Field(default_factory=dict)
    """Laid over the task's own settings of the same method, field by field of the first level."""
    only_where_named: bool = False
    """Tasks that do not name the method go without it, in place of the settings above alone."""
    primary: bool = True
    """Counts for the run's verdict; else it stands beside it."""


class PlanSpec(Strict):
    """What one version of a plan says. Immutable once it is stored."""

    graders: list[PlanGrader] = Field(default_factory=list[PlanGrader], max_length=16)
    """Empty: the task's own graders as they stand."""
    combine: Combine = Combine.SUM
    notes: str = Field(default="", max_length=10_000)


class PlanName(Strict):
    name: Name
    version: int = Field(ge=1)

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


GradingQueue = Literal["rooms", "judges", "people"]
"""Who decides: a process with sandboxes, models, or people (through a campaign; no job waits for them)."""


def specs_for(plan: PlanSpec, own: list[GraderSpec]) -> list[tuple[GraderSpec, bool]]:
    """Return what grades a task under the plan, each with whether it is primary.

    ``own``: the task's graders. A method that the task names twice is taken twice.
    """
    if not plan.graders:
        return [(spec, True) for spec in own]
    found: list[tuple[GraderSpec, bool]] = []
    for wanted in plan.graders:
        named = [spec for spec in own if spec.method == wanted.method]
        if not named and wanted.only_where_named:
            continue
        for spec in named or [GraderSpec(method=wanted.method)]:
            merged = {**spec.settings, **wanted.settings}
            found.append((GraderSpec(method=wanted.method, settings=merged), wanted.primary))
    return found
