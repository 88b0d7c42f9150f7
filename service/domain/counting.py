"""Which runs tables count, and as what: the benchmark's policies applied to one run (NEEDS A29, B15, B17, B18).

A run that is not counted has a reason, always. Nothing that graders could not decide becomes a score.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from service.domain.benchmarks import Policies
from service.domain.run_states import EndedBecause, Flag, Outcome, Phase, gradeable


class Exclusion(StrEnum):
    """Why no table counts a run. The first that applies, in this order."""

    CONTROL = "control"
    """Its deliverable was altered to try graders out."""
    PREFLIGHT = "preflight"
    """It was made to see whether the agent runs at all."""
    INVALIDATED = "invalidated"
    NOT_DONE = "not_done"
    CANCELLED = "cancelled"
    ASSISTED = "assisted"
    """A person was in its sandbox."""
    STOPPED = "stopped"
    """A person stopped it: what it had by then says little of the agent."""
    INFRASTRUCTURE = "infrastructure"
    """Ours or the provider's failure ended it."""
    NO_DELIVERABLE = "no_deliverable"
    """By the benchmark's policy."""
    PARTIAL_AFTER_LIMIT = "partial_after_limit"
    """By the benchmark's policy."""
    ABSTAINED = "abstained"
    """Graders were not sure."""
    UNGRADED = "ungraded"
    """Graders failed, or there are none."""
    NO_POINTS = "no_points"
    """Its verdict has no points to be had."""


LIMITS = frozenset(
    {
        EndedBecause.WALL_CLOCK,
        EndedBecause.BUDGET,
        EndedBecause.MEMORY_LIMIT,
        EndedBecause.OUTPUT_LIMIT,
        EndedBecause.DISK_LIMIT,
    }
)
"""Ends that ``partial_after_limit`` is about."""
_PREFLIGHT = "preflight"


@dataclass(frozen=True, slots=True)
class Counted:
    """Exactly one of the two is set."""

    value: float | None
    """0 to 1."""
    exclusion: Exclusion | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What decides how a run counts."""

    phase: str
    outcome: str | None
    ended_because: str | None
    flags: Collection[str]
    score: float | None
    max_score: float | None


def counted(run: Facts, policies: Policies) -> Counted:
    """Return the run's fraction after the policies, or why it has none."""
    excluded = _set_aside(run)
    if excluded is not None:
        return Counted(None, excluded)
    if Flag.NO_DELIVERABLE in run.flags and policies.no_deliverable != "as_graded":
        return _by_policy(policies.no_deliverable, Exclusion.NO_DELIVERABLE)
    if run.ended_because in LIMITS and policies.partial_after_limit != "grade":
        return _by_policy(policies.partial_after_limit, Exclusion.PARTIAL_AFTER_LIMIT)
    if run.outcome != Outcome.GRADED or run.score is None or run.max_score is None:
        return Counted(None, Exclusion.ABSTAINED if run.outcome == Outcome.ABSTAINED else Exclusion.UNGRADED)
    if run.max_score <= 0:
        return Counted(None, Exclusion.NO_POINTS)
    return Counted(run.score / run.max_score)


def _by_policy(policy: str, reason: Exclusion) -> Counted:
    return Counted(0.0) if policy == "zero" else Counted(None, reason)


def _set_aside(run: Facts) -> Exclusion | None:
    cause = None if run.ended_because is None else _cause(run.ended_because)
    rules = (
        (Flag.CONTROL in run.flags, Exclusion.CONTROL),
        (_PREFLIGHT in run.flags, Exclusion.PREFLIGHT),
        (run.outcome == Outcome.INVALIDATED, Exclusion.INVALIDATED),
        (run.phase != Phase.DONE, Exclusion.NOT_DONE),
        (run.outcome == Outcome.CANCELLED, Exclusion.CANCELLED),
        (Flag.ASSISTED in run.flags, Exclusion.ASSISTED),
        (cause is EndedBecause.STOPPED, Exclusion.STOPPED),
        (cause is not None and not gradeable(cause), Exclusion.INFRASTRUCTURE),
    )
    return next((reason for holds, reason in rules if holds), None)


def _cause(value: str) -> EndedBecause | None:
    return next((cause for cause in EndedBecause if cause == value), None)
