"""Preferences between two deliverables: what was said on two scales, and what several opinions make of it.

People (campaigns) and judges (method ``pairwise``) are counted by the same rules.
"""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

READINGS = 2
"""Independent opinions of one pair; one more breaks the tie where they differ."""


class Choice(StrEnum):
    """An opinion on one scale, of deliverables named first and second."""

    FIRST = "first"
    SAME = "same"
    SECOND = "second"

    @property
    def worth(self) -> float:
        """What it gives the first deliverable: 1, 0.5 or 0."""
        return _WORTH[self]

    @property
    def swapped(self) -> "Choice":
        """The same opinion, said of the deliverables in the other order."""
        return _SWAPPED[self]


class Combination(StrEnum):
    """How the two scales of one opinion become one choice."""

    COMPLETION_THEN_QUALITY = "completion_then_quality"
    """Who is closer to satisfying the brief; where nobody is, whose work is better."""
    COMPLETION = "completion"
    QUALITY = "quality"
    MEAN = "mean"
    """Both count alike: opposed scales cancel out."""


_WORTH = {Choice.FIRST: 1.0, Choice.SAME: 0.5, Choice.SECOND: 0.0}
_SWAPPED = {Choice.FIRST: Choice.SECOND, Choice.SAME: Choice.SAME, Choice.SECOND: Choice.FIRST}


def combined(completion: Choice, quality: Choice, rule: Combination) -> Choice:
    """Return the one choice that an opinion's two scales stand for."""
    match rule:
        case Combination.COMPLETION_THEN_QUALITY:
            return completion if completion is not Choice.SAME else quality
        case Combination.COMPLETION:
            return completion
        case Combination.QUALITY:
            return quality
        case Combination.MEAN:
            return _toward(completion.worth + quality.worth - 1)


def preference(choices: Sequence[Choice]) -> float:
    """Return what several opinions give the first deliverable: 1 or 0 by strict majority, 0.5 in every other case.

    Raises ValueError for no opinion at all.
    """
    return majority(choices).worth


def majority(choices: Sequence[Choice]) -> Choice:
    """Return the choice of more than half of the opinions; ``same`` where there is none. Raises ValueError for none."""
    if not choices:
        raise ValueError("a preference needs an opinion")
    choice, votes = Counter(choices).most_common(1)[0]
    return choice if votes * 2 > len(choices) else Choice.SAME


def is_split(choices: Sequence[Choice]) -> bool:
    """Tell whether no choice, ``same`` included, has more than half of the opinions."""
    return max(Counter(choices).values(), default=0) * 2 <= len(choices)


def wants_another(choices: Sequence[Choice]) -> bool:
    """Tell whether one more opinion is to be asked for: fewer than two so far, or two that differ."""
    return len(choices) < READINGS or (len(choices) == READINGS and is_split(choices))


def _toward(difference: float) -> Choice:
    if difference > 0:
        return Choice.FIRST
    return Choice.SECOND if difference < 0 else Choice.SAME
