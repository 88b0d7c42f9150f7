"""Ratings of people: the two forms, and what the ratings of one item so far make of it (facts of the RLI's panel)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.domain.preferences import Choice, Combination, combined, majority
from service.domain.tasks import Strict

Notes = Annotated[str, Field(max_length=10_000)]
Reason = Annotated[str, Field(max_length=2000)]
ACCEPTABLE = 2
"""Lowest rating that a reasonable client would accept."""


class FailureTag(StrEnum):
    TECHNICAL_INTEGRITY = "technical_integrity"
    """Files are corrupt, empty or of the wrong kind."""
    INCOMPLETE = "incomplete"
    POOR_QUALITY = "poor_quality"
    INCONSISTENT = "inconsistent"
    CANNOT_OPEN = "cannot_open"
    """The rater could not open it: no opinion on what is in it."""


class PanelRating(Strict):
    """Form ``human_panel``: the deliverable against the human reference."""

    rating: Annotated[int, Field(ge=1, le=3, strict=True)]
    """1: worse than the reference and not acceptable. 2: as good, acceptable. 3: better."""
    failed_early: bool = False
    """A critical flaw ended the reading; ``rating`` is 1 and ``reason`` names the flaw."""
    reason: Reason = ""
    tags: Annotated[tuple[FailureTag, ...], Field(max_length=len(FailureTag))] = ()
    notes: Notes = ""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.failed_early and (self.rating != 1 or not self.reason.strip()):
            raise ValueError("an early fail has rating 1 and a reason")
        if len(set(self.tags)) != len(self.tags):
            raise ValueError("a tag is named twice")
        return self

    @property
    def accept(self) -> bool:
        return self.rating >= ACCEPTABLE


Side = Literal["a", "same", "b"]


class PairRating(Strict):
    """Form ``pairwise``: deliverables A and B as the rater saw them."""

    completion: Side
    """Which is closer to satisfying the brief."""
    quality: Side
    """Which is better work on the whole."""
    notes: Notes = ""

    def opinion(self, *, swapped: bool) -> "PairOpinion":
        """Return the same with the item's own order. ``swapped``: the item's second was shown as A."""
        return PairOpinion(
            completion=_choice(self.completion, swapped=swapped),
            quality=_choice(self.quality, swapped=swapped),
            notes=self.notes,
        )


class PairOpinion(Strict):
    """A pairwise rating in the item's own order."""

    completion: Choice
    quality: Choice
    notes: Notes = ""

    def choice(self, rule: Combination) -> Choice:
        return combined(self.completion, self.quality, rule)

    def seen(self, *, swapped: bool) -> PairRating:
        """Return it as the rater gave it."""
        completion, quality = (c.swapped if swapped else c for c in (self.completion, self.quality))
        return PairRating(completion=_NAMES[completion], quality=_NAMES[quality], notes=self.notes)


_SIDES = {"a": Choice.FIRST, "same": Choice.SAME, "b": Choice.SECOND}
_NAMES: dict[Choice, Side] = {Choice.FIRST: "a", Choice.SAME: "same", Choice.SECOND: "b"}


def _choice(side: Side, *, swapped: bool) -> Choice:
    choice = _SIDES[side]
    return choice.swapped if swapped else choice


class Purpose(StrEnum):
    """What a rating of an item is for."""

    RATING = "rating"
    SECOND_PASS = "second_pass"  # noqa: S105 - no password
    """Checks a success."""
    ADJUDICATION = "adjudication"
    """Settles a success that its second pass denied."""
    AUDIT = "audit"
    """Checks the verdict and never changes it."""
    GOLD = "gold"
    """Qualifies the rater; counts for nothing else."""


@dataclass(frozen=True, slots=True)
class Given:
    purpose: Purpose
    label: bool | Choice
    """Acceptance (panel), or the choice that the two scales stand for (pairwise)."""


@dataclass(frozen=True, slots=True)
class Rules:
    per_item: int = 2
    """Independent ratings; one more where they have no majority."""
    second_pass: bool = False
    audited: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an item stands: what it waits for, and what is decided."""

    want: Purpose | None
    wanted: int = 0
    """How many ratings of this purpose there are to be in all."""
    verdict: bool | Choice | None = None
    """Null: not decided. An audit may be wanted of what is."""


def panel_standing(given: Sequence[Given], rules: Rules) -> Standing:
    """Return the standing by the majority of *accept* or *reject*, not of 1, 2 and 3."""
    votes = [g.label is True for g in given if g.purpose is Purpose.RATING]
    accepting, n = sum(votes), len(votes)
    if n < rules.per_item or 2 * accepting == n:
        return Standing(Purpose.RATING, max(rules.per_item, n + (n >= rules.per_item)))
    accepted = 2 * accepting > n
    if accepted and rules.second_pass:
        seconds = _labels(given, Purpose.SECOND_PASS)
        if not seconds:
            return Standing(Purpose.SECOND_PASS, 1)
        if seconds[0] is not True:
            words = _labels(given, Purpose.ADJUDICATION)
            if not words:
                return Standing(Purpose.ADJUDICATION, 1)
            accepted = words[0] is True
    return _decided(given, rules, accepted)


def pair_standing(given: Sequence[Given], rules: Rules) -> Standing:
    """Return the standing by the strict majority of choices; without one, one more rating, and then ``same``."""
    choices = [Choice(g.label) for g in given if g.purpose is Purpose.RATING]
    n = len(choices)
    if n < rules.per_item or (n == rules.per_item and choices.count(majority(choices)) * 2 <= n):
        return Standing(Purpose.RATING, rules.per_item + (n >= rules.per_item))
    return _decided(given, rules, majority(choices))


def _decided(given: Sequence[Given], rules: Rules, verdict: bool | Choice) -> Standing:
    audits = _labels(given, Purpose.AUDIT)
    if rules.audited and not audits:
        return Standing(Purpose.AUDIT, 1, verdict)
    return Standing(None, 0, verdict)


def _labels(given: Sequence[Given], purpose: Purpose) -> list[bool | Choice]:
    return [g.label for g in given if g.purpose is purpose]
