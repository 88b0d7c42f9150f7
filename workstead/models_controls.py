"""Altered-work controls, as the API shows them."""

from workstead.models import Model


class ControlsSide(Model):
    n: int
    accepted: int
    acceptance: float | None = None
    """Null without a pair."""
    mean_fraction: float | None = None


class ControlsDifference(Model):
    """Of acceptance, controls minus originals."""

    mean: float | None = None
    interval: tuple[float, float] | None = None
    """95 %."""


class ControlsOfKind(Model):
    kind: str
    controls: int
    outcomes: dict[str, int]
    """``made``, ``found``, or why there is none."""
    pairs: int
    excluded: dict[str, int]
    """Controls whose pair does not count, by why."""
    originals: ControlsSide
    altered: ControlsSide
    difference: ControlsDifference


class Controls(Model):
    """What graders made of deliverables that were altered on purpose."""

    id: str
    state: str
    """Of the operation that makes them."""
    done: bool
    """All are made and graded."""
    originals: int
    plan: str | None = None
    seed: int
    accepted_from: float
    kinds: list[ControlsOfKind]
