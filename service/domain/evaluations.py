"""Evaluations: agents by tasks by samples with their settings, drafted, estimated, started and watched as one thing.

What a client says is an :class:`EvaluationSpec`; what it means (which agents, which tasks, in which order) is worked out
once, when the draft is made, and kept with it.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from service.domain.agents import AgentSpec
from service.domain.grading_plans import TASK_PLAN
from service.domain.policies import RunBudget
from service.domain.run_states import EndedBecause
from service.domain.tasks import LABELS, Money, Name, NetworkPolicy, Strict

MOST_AGENTS = 200
MOST_TASKS = 5_000
MOST_SAMPLES = 100
MOST_RUNS = 50_000
"""Of one evaluation."""
MOST_MATRIX = 1_000
"""Combinations of a matrix before ``exclude``."""
Reference = Annotated[str, Field(min_length=1, max_length=200)]
Glob = Annotated[str, Field(min_length=1, max_length=300)]
"""A pattern with ``*``, ``?`` and ``[…]`` over an item's key or its task's name."""
Seed = Annotated[int, Field(ge=0, lt=1 << 53)]


class EvaluationState(StrEnum):
    DRAFT = "draft"
    """Expanded and estimated; no run exists."""
    CHECKING = "checking"
    """Preflight is under way."""
    RUNNING = "running"
    DONE = "done"
    """Every run is done; a run that is added makes it ``running`` again. Set by the database with the run's change."""
    STOPPED = "stopped"
    """A person has stopped it: what had not begun is cancelled. ``resume`` makes what is missing."""


class RunSettings(Strict):
    """What runs may be given beside task and agent; null leaves what is said further out, at last the task's own."""

    limits: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=32)
    """Fields of the task's limits that are replaced; the larger of this and the scaffold's minimum holds."""
    budget: RunBudget | None = None
    network: NetworkPolicy | None = None
    """Another policy than the task's: the runs are flagged ``policy_changed``."""
    runtime: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")] | None = None
    max_attempts: int | None = Field(default=None, ge=1, le=5)
    priority: int | None = Field(default=None, ge=-100, le=100)
    keep_on_failure_s: float | None = Field(default=None, ge=0, le=86_400)
    labels: LABELS = Field(default_factory=dict[str, str])


class AgentChoice(Strict):
    """One row of the tables: an agent that exists, or the parts of one that is then made."""

    agent: Reference | None = None
    """Id or label."""
    scaffold: Reference | None = None
    """``name@version``; ``name`` alone or ``name@latest`` is resolved when the draft is made."""
    model: Name | None = None
    settings: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=64)
    """Laid over the evaluation's ``settings``, field by field."""
    label: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    run: RunSettings = Field(default_factory=RunSettings)
    """Laid over the evaluation's ``run``."""
    samples: int | None = Field(default=None, ge=1, le=MOST_SAMPLES)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.agent is None) == (self.scaffold is None):
            raise ValueError("name either an agent or a scaffold")
        if self.agent is not None and (self.model is not None or self.settings or self.label is not None):
            raise ValueError("an agent that exists has its model, settings and label already")
        return self

    def spec(self, common: dict[str, Any]) -> AgentSpec:
        """Return what the agent would be; only where ``scaffold`` is given, with its version."""
        settings = {**common, **self.settings}
        return AgentSpec(scaffold=str(self.scaffold), model=self.model, settings=settings, label=self.label)


Axis = Annotated[list[Any], Field(min_length=1, max_length=100)]


class Matrix(Strict):
    """Every combination of the axes, but those that ``exclude`` matches, and ``include`` beside them (NEEDS A4)."""

    scaffold: list[Reference] = Field(min_length=1, max_length=100)
    model: list[Name | None] = Field(default_factory=lambda: [None], min_length=1, max_length=100)
    settings: dict[Annotated[str, Field(max_length=64)], Axis] = Field(default_factory=dict[str, Axis], max_length=8)
    """Setting → its values, such as ``effort``: an axis each."""
    exclude: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]], max_length=200)
    """Each leaves out the combinations that have all its members: ``scaffold``, ``model``, or settings by their names."""
    include: list[AgentChoice] = Field(default_factory=list[AgentChoice], max_length=MOST_AGENTS)


class TaskSelection(Strict):
    """Which items of the benchmark, in its order (NEEDS B4)."""

    include: list[Glob] = Field(default_factory=list[str], max_length=200)
    """Empty: all."""
    exclude: list[Glob] = Field(default_factory=list[str], max_length=200)
    facets: dict[str, list[str]] = Field(default_factory=dict[str, list[str]], max_length=32)
    """Facet → values, one of which the task must have; numbers as text."""
    disputed: bool = True
    """Whether disputed items are among them. Quarantined ones are only if ``include`` has their key as it is."""
    limit: int | None = Field(default=None, ge=1, le=MOST_TASKS)
    """Draw so many at random; which, is decided by the evaluation's seed alone."""


class Order(StrEnum):
    BREADTH = "breadth"
    """One sample of every task for every agent before the second, tasks interleaved: partial tables compare like with like."""
    DEPTH = "depth"
    """All samples of all tasks of one agent, then the next agent."""


STOPPING = frozenset({EndedBecause.SCAFFOLD_ERROR, EndedBecause.PROVISION_FAILED})


class StopRules(Strict):
    """When an agent is held because its runs look broken rather than weak (NEEDS B10).

    A run counts as bad if it ended as ``scaffold_error`` or ``provision_failed``, delivered nothing within ``empty_s`` of its
    start, or if the provider refused its last model request (4xx but 429).
    """

    enabled: bool = True
    first: int = Field(default=10, ge=1, le=1_000)
    """Of the first so many ended runs of an agent …"""
    first_bad: int = Field(default=5, ge=1, le=1_000)
    """… so many were bad."""
    last: int = Field(default=50, ge=1, le=1_000)
    """Of the last so many ended runs …"""
    last_share: float = Field(default=0.2, gt=0, le=1)
    """… this share was bad."""
    empty_s: float = Field(default=60, ge=0, le=86_400)


class EvaluationBudget(Strict):
    """Dollars of the whole evaluation, agents and judges apart (NEEDS B8); null = no limit."""

    agents_usd: Money | None = None
    """Models and services, all attempts. Checked before a run starts against what is spent and what running ones may spend."""
    judges_usd: Money | None = None
    at_limit: Literal["hold", "stop"] = "hold"
    """At 100 %: no new run starts; ``stop`` also stops the running ones (mode ``collect``)."""


class Concurrency(Strict):
    """Most live runs of the evaluation at once (NEEDS B9); what is not named is not limited here."""

    total: int | None = Field(default=None, ge=0, le=100_000)
    per_agent: int | None = Field(default=None, ge=0, le=100_000)
    """Of each agent that ``agents`` does not name."""
    agents: dict[Reference, int] = Field(default_factory=dict[str, int], max_length=MOST_AGENTS)
    """Agent's id or label → limit."""
    models: dict[Reference, int] = Field(default_factory=dict[str, int], max_length=MOST_AGENTS)
    """Catalogue name → limit."""
    providers: dict[Reference, int] = Field(default_factory=dict[str, int], max_length=MOST_AGENTS)


class EvaluationSpec(Strict):
    """What a client asks for (``evaluation.schema.json``); the YAML of ``workstead eval run`` is the same."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    replay_of: Reference | None = None
    """Id of an evaluation that is done again from its recordings: models and judges answer as they did, nobody is asked.
    Beside it only name, budget, stop_rules, concurrency, labels and notes may be said; the rest is as it was."""
    benchmark: Reference | None = None
    """Id, ``name@version``, or a name: its newest version."""
    task_ids: list[Reference] = Field(default_factory=list[str], max_length=MOST_TASKS)
    """Tasks without a benchmark."""
    tasks: TaskSelection = Field(default_factory=TaskSelection)
    agents: list[AgentChoice] = Field(default_factory=list[AgentChoice], max_length=MOST_AGENTS)
    matrix: Matrix | None = None
    settings: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=64)
    """Of every agent that is made here."""
    run: RunSettings = Field(default_factory=RunSettings)
    samples: int = Field(default=1, ge=1, le=MOST_SAMPLES)
    order: Order = Order.BREADTH
    plan: Reference = TASK_PLAN
    """Primary grading plan."""
    seed: Seed = 0
    """Of the draw of tasks and of every interval in its reports."""
    budget: EvaluationBudget = Field(default_factory=EvaluationBudget)
    stop_rules: StopRules = Field(default_factory=StopRules)
    concurrency: Concurrency = Field(default_factory=Concurrency)
    labels: LABELS = Field(default_factory=dict[str, str])
    notes: Annotated[str, Field(max_length=10_000)] = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.replay_of is not None:
            return self
        if (self.benchmark is None) == (not self.task_ids):
            raise ValueError("name either a benchmark or task_ids")
        if not self.agents and self.matrix is None:
            raise ValueError("name at least one agent, or a matrix")
        return self
