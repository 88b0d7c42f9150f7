"""Forecasts: what models say beforehand of whether an agent's work at a task will be accepted (NEEDS A25).

A set asks every forecaster about every task with every prompt, all about one described agent. Whether a forecast came before
the agent's first attempt is worked out from runs, never taken from anybody's word.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from service.domain.evaluations import MOST_TASKS, Reference, Seed, TaskSelection
from service.domain.judging import JudgeSpec
from service.domain.models import TokenUsage
from service.domain.tasks import LABELS, Strict

MOST_FORECASTERS, MOST_PROMPTS = 64, 128
MOST_FORECASTS = 300_000
"""Of one set."""
MOST_REASON = 4_000
"""Characters of a reason that are kept."""
MOST_IMPORTED = 2_000
"""Of one call."""
TEMPLATE = "forecast@1"
LIMITS = 6
IMPORTED = "imported"
Text = Annotated[str, Field(min_length=1, max_length=8_000)]


class ForecastState(StrEnum):
    OK = "ok"
    EXCLUDED = "excluded"
    """No answer fitted, the second one included: in none of the forecaster's figures, and counted."""
    FAILED = "failed"
    """It could not be asked (no such model, refused, budget); ``start`` with ``retry_failed`` asks again."""


class Variant(StrEnum):
    """What the forecaster is told of the agent beside the description."""

    GENERIC = "generic"
    """Nothing."""
    LIMITS = "limits"
    """Six limits it works under."""
    PLACEBO = "placebo"
    """Six sentences that say nothing of what it can do."""
    MISSTATED = "misstated"
    """That it has a sandbox and tools, which is not so."""
    DROP_1 = "drop_1"
    """The limits but the first; and so on."""
    DROP_2 = "drop_2"
    DROP_3 = "drop_3"
    DROP_4 = "drop_4"
    DROP_5 = "drop_5"
    DROP_6 = "drop_6"
    ONLY_1 = "only_1"
    """The first limit alone; and so on."""
    ONLY_2 = "only_2"
    ONLY_3 = "only_3"
    ONLY_4 = "only_4"
    ONLY_5 = "only_5"
    ONLY_6 = "only_6"

    @property
    def limits(self) -> tuple[int, ...]:
        """Return the limits that it names, from 1."""
        every = range(1, LIMITS + 1)
        kind, _, number = self.value.partition("_")
        if kind == "drop":
            return tuple(n for n in every if n != int(number))
        return (int(number),) if kind == "only" else tuple(every) if self is Variant.LIMITS else ()


class System(StrEnum):
    """How the forecaster itself is addressed."""

    NEUTRAL = "neutral"
    TOOLS = "tools"
    """As somebody who uses tools (it has none)."""


class ForecastPrompt(Strict):
    variant: Variant
    reason: bool = False
    """Whether a reason is asked for before the numbers."""
    system: System = System.NEUTRAL

    @property
    def key(self) -> str:
        reason = "+reason" if self.reason else ""
        return f"{self.variant}{reason}{'' if self.system is System.NEUTRAL else f'@{self.system}'}"


class ForecasterSpec(JudgeSpec):
    """A model as a forecaster."""

    max_output_tokens: int = Field(default=4_096, ge=256, le=100_000)
    """Thinking included; twice as many for the second question."""


class DescribedAgent(Strict):
    """Whom the forecasts are about."""

    agent: Reference | None = None
    """Id or label of the agent whose runs they are compared with; null: none of this installation."""
    text: Text | None = None
    """What forecasters are told of it; null: the template's own words."""


def all_prompts() -> list[ForecastPrompt]:
    """Return what a set asks unless it says otherwise: without and with the limits."""
    return [ForecastPrompt(variant=Variant.GENERIC), ForecastPrompt(variant=Variant.LIMITS)]


class ForecastSetSpec(Strict):
    """What a client asks for."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    benchmark: Reference | None = None
    """Id, ``name@version``, or a name: its newest version."""
    task_ids: list[Reference] = Field(default_factory=list[str], max_length=MOST_TASKS)
    """Tasks without a benchmark."""
    tasks: TaskSelection = Field(default_factory=TaskSelection)
    about: DescribedAgent = Field(default_factory=DescribedAgent)
    forecasters: list[ForecasterSpec] = Field(default_factory=list[ForecasterSpec], max_length=MOST_FORECASTERS)
    """Empty: forecasts that were made elsewhere are imported."""
    prompts: list[ForecastPrompt] = Field(default_factory=all_prompts, min_length=1, max_length=MOST_PROMPTS)
    template: Annotated[str, Field(max_length=64)] = TEMPLATE
    seed: Seed = 0
    """Of the draw of tasks, and of the numbers that fence off what others wrote."""
    labels: LABELS = Field(default_factory=dict[str, str])
    notes: Annotated[str, Field(max_length=10_000)] = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.benchmark is None) == (not self.task_ids):
            raise ValueError("name either a benchmark or task_ids")
        if len({one.key for one in self.forecasters}) != len(self.forecasters):
            raise ValueError("a forecaster is there twice")
        if len({one.key for one in self.prompts}) != len(self.prompts):
            raise ValueError("a prompt is there twice")
        return self


class Said(Strict):
    """What a forecaster said of one task."""

    p_hat: float = Field(ge=0, le=1)
    """Probability that a client would accept and pay."""
    context_dependence: int | None = Field(default=None, ge=1, le=5)
    verifiability: int | None = Field(default=None, ge=1, le=5)
    autonomy_horizon: int | None = Field(default=None, ge=1, le=5)
    tool_credential_surface: int | None = Field(default=None, ge=0, le=3)
    deliverable_modality: Literal[0, 1] | None = None
    """1: an artefact is handed over; 0: it is not (a service, access, talk)."""
    reason: Annotated[str, Field(max_length=MOST_REASON)] | None = None


class ImportedForecast(Said):
    """A forecast that was made elsewhere."""

    task: Reference
    """Task id, or the item's key in the set's benchmark."""
    forecaster: Annotated[str, Field(min_length=1, max_length=200)]
    prompt: Annotated[str, Field(min_length=1, max_length=100)] = IMPORTED
    model: Annotated[str, Field(max_length=200)] | None = None
    declared_at: AwareDatetime | None = None
    """When it was made, as its maker says; nothing follows from it."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """One forecast as it is recorded."""

    task_id: str
    forecaster: str
    """Key."""
    prompt: str
    """Key."""
    state: ForecastState
    said: Said | None = None
    variant: str | None = None
    with_reason: bool | None = None
    system: str | None = None
    model: str | None = None
    """Catalogue name; of imported ones what their maker says."""
    reported_model: str | None = None
    source: Literal["asked", "imported"] = "asked"
    asks: int = 0
    cause: str | None = None
    """Why it is excluded or failed."""
    template_sha256: str | None = None
    rendered_sha256: str | None = None
    """Of what was asked: a blob of JSON {system, text}."""
    usage: TokenUsage | None = None
    """Of all its answers; null where one is unknown."""
    cost_usd: Decimal | None = None
    declared_at: datetime | None = None

    @property
    def columns(self) -> dict[str, Any]:
        said = dict.fromkeys(Said.model_fields) if self.said is None else self.said.model_dump()
        return {name: said[name] for name in Said.model_fields}
