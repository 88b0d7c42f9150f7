"""Probes of judges (NEEDS E 3): what a judge does with deliverables of one's own before anything depends on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from service.domain.judging import JudgeSpec
from service.domain.tasks import Strict

VERSION = "1"
"""Of the conditions and figures."""
MOST_RUNS, MOST_REPEATS = 500, 9
PlanReference = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}@[1-9][0-9]{0,5}$")]


class Section(StrEnum):
    REPEATS = "repeats"
    """The same deliverable again."""
    ALTERED = "altered"
    """Less, nothing, or another task's work: must not be judged as well."""
    INJECTION = "injection"
    """Texts that ask for a good verdict, of ten families: must change nothing."""
    DRIFT = "drift"
    """Harmless additions: must change nothing either, or the defence costs right verdicts."""
    ORDER = "order"
    """The files in reverse."""
    LENGTH = "length"
    """The same with a long appendix that adds nothing."""


class ProbeSpec(Strict):
    """What is asked of which judge."""

    judge: JudgeSpec
    plan: PlanReference
    """Whose first method with judges is used, its prompts and settings included, with this judge alone in their place."""
    n: int = Field(default=60, ge=1, le=MOST_RUNS)
    """Deliverables, drawn evenly over agents from those that the selection gives."""
    seed: int = Field(default=0, ge=0, le=1 << 53)
    repeats: int = Field(default=3, ge=2, le=MOST_REPEATS)
    """Gradings of the unaltered deliverable."""
    sections: list[Section] = Field(default_factory=lambda: [*Section], min_length=1, max_length=len(Section))
    compare_with: PlanReference | None = None
    """Another plan whose stored verdicts of the same runs are compared (another judge's)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One grading of one deliverable under one condition."""

    run_id: str
    fraction: float | None
    """Of the points; null: no verdict."""
    answers: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Criterion → whether it was met."""
    cause: str | None = None
    """Why there is no verdict."""
    models: tuple[str, ...] = ()
    """What the judge called itself."""

    @property
    def passed(self) -> bool | None:
        return None if self.fraction is None else self.fraction >= 1


class Share(Strict):
    """A share with its denominator."""

    n: int
    count: int
    rate: float | None = None
    """Null: of nothing."""
    interval: tuple[float, float] | None = None
    """95 %, Wilson."""


class Shift(Strict):
    """Fractions of the altered against those of the unaltered, over the same deliverables."""

    n: int
    mean: float | None = None
    interval: tuple[float, float] | None = None
    """95 %, percentile bootstrap over deliverables."""
    up: int = 0
    """Deliverables that passed only when they were altered."""
    down: int = 0
    higher: int = 0
    """Deliverables with a higher fraction than in every one of their repeats."""
    failed: int = 0
    """Gradings that came to no verdict: not in ``n``."""


class Repeats(Strict):
    deliverables: int
    items: int
    """Criteria that were decided in every repeat."""
    kappa: float | None = None
    """Fleiss, over items; null where only one answer was ever given."""
    agreement: float | None = None
    """Share of equal answers over all pairs of repeats of an item."""
    flips: Share
    """Deliverables whose pass or fail differs between repeats."""
    fraction_spread: float | None = None
    """Mean over deliverables of the largest minus the smallest fraction."""


class Compared(Strict):
    """Against verdicts that are stored already."""

    against: str
    """``human_panel`` or a plan."""
    n: int
    agreement: float | None = None
    kappa: float | None = None
    """Cohen, over pass and fail."""
    passed: Share
    """By the judge."""
    passed_there: Share


class Cost(Strict):
    requests: int
    input_tokens: int
    output_tokens: int
    usd: float | None = None
    """Null: no price is known."""
    usd_per_grading: float | None = None
    gradings: int = 0


class ProbeReport(Strict):
    """One page on one judge."""

    v: Literal["1"] = VERSION
    judge: JudgeSpec
    judge_key: str
    reported_models: list[str]
    """As the provider calls them, all that were seen."""
    plan: str
    method: str
    method_version: str
    prompt: str
    seed: int
    runs: list[str]
    """Ids of the runs whose deliverables were used."""
    repeats: Repeats | None = None
    altered: dict[str, Shift] = Field(default_factory=dict[str, Shift])
    """Kind (``quarter``, ``other_task``, ``empty``) → shift."""
    injection: dict[str, Shift] = Field(default_factory=dict[str, Shift])
    """Family → shift."""
    drift: dict[str, Shift] = Field(default_factory=dict[str, Shift])
    order: Shift | None = None
    length: Shift | None = None
    compared: list[Compared] = Field(default_factory=list[Compared])
    failures: dict[str, int] = Field(default_factory=dict[str, int])
    """Cause → gradings without a verdict."""
    cost: Cost
    concerns: list[str] = Field(default_factory=list[str])
    """In words: what of this should be settled before figures rest on the judge."""
