"""Campaigns: which deliverables people rate, by which form and rules, and who they are (NEEDS A13)."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from service.domain.judging import JudgeSpec
from service.domain.preferences import READINGS, Choice, Combination
from service.domain.tasks import LABELS, Name, Strict

MAX_ITEMS = 10_000
MAX_RATERS = 200
Ids = Annotated[list[str], Field(max_length=MAX_ITEMS)]
Few = Annotated[list[str], Field(max_length=64)]
Category = Annotated[str, Field(min_length=1, max_length=200)]
PANEL_S, PAIRWISE_S = 20 * 60.0, 30 * 60.0
"""Soft limits of the two forms, in seconds."""


class Form(StrEnum):
    HUMAN_PANEL = "human_panel"
    """Each deliverable against the human reference: 1, 2 or 3."""
    PAIRWISE = "pairwise"
    """Two deliverables of one task: who is closer to the brief, whose work is better."""


class CampaignState(StrEnum):
    DRAFT = "draft"
    OPEN = "open"
    CLOSED = "closed"


class RunWhere(Strict):
    """Which runs with a sealed deliverable. Every field that is set must hold; empty: all."""

    ids: Ids = Field(default_factory=list[str])
    agent_id: Few = Field(default_factory=list[str])
    task_id: Ids = Field(default_factory=list[str])
    benchmark_id: Few = Field(default_factory=list[str])
    evaluation_id: Few = Field(default_factory=list[str])
    phase: Few = Field(default_factory=list[str])
    """``grading``: those whose gradings wait, perhaps for these people."""
    outcome: Few = Field(default_factory=list[str])
    flag: Few = Field(default_factory=list[str])
    model: Few = Field(default_factory=list[str])
    scaffold: Few = Field(default_factory=list[str])
    labels: LABELS = Field(default_factory=dict[str, str])
    facets: LABELS = Field(default_factory=dict[str, str])


class Selection(Strict):
    """What is rated. Drawn once, when the campaign is made."""

    where: RunWhere = Field(default_factory=RunWhere)
    verdict: Literal["accepted", "rejected"] | None = None
    """Only runs whose verdict is a success (or none): an audit of it. Null: whatever their verdict."""
    plan: Annotated[str, Field(max_length=140)] | None = None
    """Grading plan (name@version) whose verdict is meant; null: the run's own."""
    accepted_from: float = Field(default=0.5, ge=0, le=1)
    """Least share of the points that makes a success."""
    n: int | None = Field(default=None, ge=1, le=MAX_ITEMS)
    """Size of a random sample; null: all that there are."""
    stratify: Annotated[str, Field(max_length=64)] | None = None
    """``agent``, or the name of a facet: the sample is spread evenly over its values."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)


class Pairs(Strict):
    """Form ``pairwise``: between whom."""

    agents: Annotated[list[str], Field(min_length=1, max_length=50)]
    """Ids; each is paired with each, on tasks on which both delivered."""
    human: bool = True
    """Each agent is also paired with the human reference of the task."""
    per_pair: int = Field(default=10, ge=1, le=1000)
    """Tasks of each pair, spread over the values of ``stratify``; fewer where there are no more."""

    @model_validator(mode="after")
    def _makes_pairs(self) -> Self:
        if len(set(self.agents)) != len(self.agents):
            raise ValueError("an agent is named twice")
        if len(self.agents) < 2 and not self.human:
            raise ValueError("a pair needs two agents, or the human reference")
        return self


class Gold(Strict):
    """An item whose right answer is known."""

    run_id: str
    other_run_id: str | None = None
    """Form ``pairwise``; null: the human reference."""
    accept: bool | None = None
    """Form ``human_panel``."""
    choice: Choice | None = None
    """Form ``pairwise``: ``first`` is ``run_id``'s."""


class Qualification(Strict):
    golds: Annotated[list[Gold], Field(min_length=1, max_length=50)]
    threshold: float = Field(default=0.8, gt=0, le=1)
    """Least share of right answers; below it a rater gets nothing further."""


class RaterSpec(Strict):
    name: Annotated[str, Field(min_length=1, max_length=200)]
    """For the lead; raters and exports see a pseudonym."""
    categories: Annotated[list[Category], Field(max_length=64)] = Field(default_factory=list[str])
    """Values of the category facet that this rater gets; empty: all."""
    model: JudgeSpec | None = None
    """A model in a person's place; form ``pairwise`` only."""
    token_id: Annotated[str, Field(max_length=64)] | None = None
    """A program in a person's place, by a token with scope ``rate``; it needs no invitation."""

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if self.model is not None and self.token_id is not None:
            raise ValueError("a rater is a model, a token or a person")
        return self


class CampaignSpec(Strict):
    """Everything of a campaign but its raters. Only the instruction, the due date, name and labels change later."""

    name: Name
    form: Form
    instruction: str = Field(min_length=1, max_length=100_000)
    """What raters are told, in Markdown; its version is kept with each rating."""
    selection: Selection = Field(default_factory=Selection)
    pairs: Pairs | None = None
    """Exactly for form ``pairwise``."""
    qualification: Qualification | None = None
    ratings_per_item: int = Field(default=READINGS, ge=1, le=9)
    """Independent ratings; one more where they disagree."""
    second_pass: bool = True
    """Form ``human_panel``: every success gets a further rating, and a deciding one where that denies it."""
    audit_share: float = Field(default=0.0, ge=0, le=1)
    """Share of items that get one more rating, which checks the verdict and does not change it."""
    audit_target: float = Field(default=0.85, ge=0, le=1)
    """Agreement of audits with verdicts that is aimed at."""
    combination: Combination = Combination.COMPLETION_THEN_QUALITY
    """Form ``pairwise``: how the two scales become one choice."""
    category_facet: Annotated[str, Field(min_length=1, max_length=64)] = "category"
    """Facet of tasks that raters' categories are values of."""
    reference_prefix: Annotated[str, Field(max_length=200)] = "reference/"
    """Hidden files below it are the human reference."""
    blind: bool = True
    """File names are shown without names of agents, models, providers and scaffolds. Raters never get more than that."""
    soft_limit_s: float | None = Field(default=None, ge=60, le=86_400)
    """Shown as a timer, never enforced; null: 20 min, for ``pairwise`` 30 min."""
    lease_s: float = Field(default=7200, ge=60, le=7 * 86_400)
    """How long an item stays with a rater who says nothing."""
    due_at: AwareDatetime | None = None
    """Shown; nothing ends by it."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    """Of raters' orders, sides A and B, and audits."""
    labels: LABELS = Field(default_factory=dict[str, str])

    @model_validator(mode="after")
    def _fits_the_form(self) -> Self:
        pairwise = self.form is Form.PAIRWISE
        if pairwise != (self.pairs is not None):
            raise ValueError("`pairs` is set exactly for form pairwise")
        golds = self.qualification.golds if self.qualification else []
        if any((g.choice is None) if pairwise else (g.accept is None or g.other_run_id is not None) for g in golds):
            raise ValueError("a gold answer is `accept` for human_panel and `choice` for pairwise")
        return self

    @property
    def soft_s(self) -> float:
        """Soft limit of one rating, in seconds."""
        return self.soft_limit_s or (PANEL_S if self.form is Form.HUMAN_PANEL else PAIRWISE_S)
