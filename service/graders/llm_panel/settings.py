"""Settings of method ``llm_panel``."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.domain.tasks import Strict
from service.graders.judging.settings import TEMPLATE, JudgingSettings

LabelName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
NO_DELIVERABLE = "no_deliverable"
UNLABELED = "unlabeled"


class Label(Strict):
    """Why a client would not pay."""

    name: LabelName
    cause: LabelName
    """What several labels have in common, for tables."""
    gloss: str = Field(default="", max_length=500)
    """As judges are told it."""


def payworthy_labels() -> list[Label]:
    """Return PayWorthy's labels in its order, by cause."""
    return [Label(name=name, cause=cause, gloss=gloss) for name, cause, gloss in _LABELS]


_LABELS = (
    ("wrong_scope", "scoping", "something else, or less, was made than what was asked for"),
    ("missing_context", "missing_information", "it lacks what only the client could have told or given"),
    (NO_DELIVERABLE, "modality_or_harness", "talk of the work, or nothing, in place of the work"),
    ("harness_limit", "modality_or_harness", "the work was cut off, or is of a kind that could not be handed in"),
    ("unverifiable", "verification", "the client could not tell whether it is right, and much depends on it"),
    ("capability_gap", "execution", "the right thing was tried, and it is not good enough"),
    ("fabricated", "fabrication", "facts, sources, results or credentials were made up"),
)


class LlmPanelSettings(JudgingSettings):
    votes: int = Field(default=3, ge=1, le=9)
    """Of each judge. Fewer valid ones than ``least_votes`` leave that judge undecided."""
    prompt: Annotated[str, Field(pattern=TEMPLATE)] = "llm_panel@1"
    least_votes: int | None = Field(default=None, ge=1, le=9)
    """Null: three, or all where fewer are asked for."""
    labels: list[Label] = Field(default_factory=payworthy_labels, min_length=1, max_length=32)
    """In order: of labels named equally often the first one stands."""
    panel: Literal["majority", "unanimity"] = "majority"
    """How the judges' own majorities make the panel's."""
    quorum: int | None = Field(default=None, ge=1, le=9)
    """Judges that must have decided. Null: with ``unanimity`` or up to two judges all of them, else all but one."""
    tie: Literal["undecided", "reject"] = "undecided"
    """What a panel without a majority (or not of one mind) comes to: no verdict, cause ``panel_tied``, or a rejection."""

    @property
    def needed_votes(self) -> int:
        return self.least_votes if self.least_votes is not None else min(3, self.votes)

    @property
    def needed_judges(self) -> int:
        every = len(self.judges)
        if self.quorum is not None:
            return self.quorum
        return every if self.panel == "unanimity" or every <= 2 else every - 1

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        if self.needed_votes > self.votes:
            raise ValueError("least_votes is more than votes")
        if self.judges and self.needed_judges > len(self.judges):
            raise ValueError("quorum is more than there are judges")
        names = [label.name for label in self.labels]
        if len(set(names)) != len(names) or UNLABELED in names:
            raise ValueError(f"a label is named once, and none is called {UNLABELED!r}")
        return self
