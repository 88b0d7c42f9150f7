"""Regrades: a plan over many runs' deliverables, estimated first, sampled on request (NEEDS B20)."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import AwareDatetime, Field, model_validator

from service.domain.tasks import Strict

MOST_RUNS = 20_000
"""Of one regrade."""
AGENT = "agent"
"""Stratum of a sample that is no facet of the task."""
Reference = Annotated[str, Field(min_length=1, max_length=200)]
Values = Annotated[tuple[Reference, ...], Field(max_length=32)]
Pairs = Annotated[
    dict[Annotated[str, Field(max_length=128)], Annotated[str, Field(max_length=1000)]], Field(max_length=32)
]


class RegradeState(StrEnum):
    DRAFT = "draft"
    """The runs are fixed, the estimate is there; nothing has been asked of anybody."""
    SAMPLING = "sampling"
    SAMPLED = "sampled"
    """The sample is graded and compared; the rest waits for a word."""
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


ENDED_REGRADES = frozenset({RegradeState.DONE, RegradeState.CANCELLED})


class RunStep(StrEnum):
    """Where one run of a regrade stands."""

    WAITING = "waiting"
    QUEUED = "queued"
    """Its gradings are made."""
    ADOPTED = "adopted"
    """The plan is the run's own now."""
    LEFT_OUT = "left_out"
    """It could not be graded: it is gone, or has no sealed deliverable any more."""


class Sample(Strict):
    n: int = Field(ge=1, le=MOST_RUNS)
    stratify: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    """``agent``, or the name of a facet of the tasks: each value gives as many runs while it has some. Null: at random."""
    seed: int = Field(default=0, ge=-(1 << 53), le=1 << 53)


class RunChoice(Strict):
    """The filters of ``GET /v1/runs``: all hold together, one with several values holds if one of them does."""

    agent_id: Values = ()
    task_id: Values = ()
    phase: Values = ()
    outcome: Values = ()
    ended_because: Values = ()
    flag: Values = ()
    model: Values = ()
    scaffold: Values = ()
    benchmark_id: Values = ()
    evaluation_id: Values = ()
    labels: Pairs = Field(default_factory=dict[str, str])
    facets: Pairs = Field(default_factory=dict[str, str])
    created_after: AwareDatetime | None = None
    created_before: AwareDatetime | None = None
    updated_after: AwareDatetime | None = None


class RegradeRequest(Strict):
    """Which runs under which plan: by ``filter`` or by ``runs``."""

    plan: Reference
    """``name@version``, or a name for its newest version."""
    filter: RunChoice | None = None
    runs: Annotated[list[Reference], Field(min_length=1, max_length=MOST_RUNS)] | None = None
    sample: Sample | None = None
    """Grade these first, and compare, before the rest."""
    primary: bool = False
    """The plan becomes each run's own once the whole set is graded; till then nothing of the runs changes."""
    round: int = Field(default=1, ge=1, le=1000)
    """The same plan over the same runs is graded once per round."""

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        if (self.filter is None) == (self.runs is None):
            raise ValueError("either filter or runs says which runs are meant")
        return self
