"""Verdicts: what graders decided, and what they could not."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from service.domain.run_states import Outcome


class VerdictState(StrEnum):
    PENDING = "pending"
    GRADING = "grading"
    GRADED = "graded"
    ABSTAINED = "abstained"
    FAILED = "failed"
    """The grader itself failed, after its retries. Never a score."""


HIDDEN_DETAIL = frozenset({"rubric", "criterion"})
"""Keys of a criterion's detail that quote hidden assets; for those who may read them."""
ENDED_VERDICTS = frozenset({VerdictState.GRADED, VerdictState.ABSTAINED, VerdictState.FAILED})


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one grading. ``score`` is null unless the state is ``graded``."""

    state: VerdictState
    score: float | None = None
    max_score: float | None = None
    cause: str | None = None
    """Why a verdict is ``failed`` or ``abstained`` (e.g. ``grader_unavailable``)."""
    criteria: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """One entry per criterion: id, score, max_score, passed, reason; cause and detail where the method has them."""
    detail: dict[str, Any] = field(default_factory=dict[str, Any])
    """The method's own summary, e.g. ``solved`` and ``wrong`` of ``test_cases``."""

    def __post_init__(self) -> None:
        graded = self.state is VerdictState.GRADED
        if graded != (self.score is not None and self.max_score is not None):
            raise ValueError("score and max_score are set exactly when the state is graded")


def outcome_of(states: list[VerdictState]) -> Outcome:
    """Combine the states of a run's primary gradings: all graded → graded, none → ungraded, any failed → ungraded."""
    if not states or VerdictState.FAILED in states:
        return Outcome.UNGRADED
    return Outcome.ABSTAINED if VerdictState.ABSTAINED in states else Outcome.GRADED
