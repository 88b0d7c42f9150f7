"""From votes to a verdict (PayWorthy 3.3): pure counting, no judge in sight."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from service.domain.judging import Vote, VoteState
from service.graders.judging.panel import majority
from service.graders.llm_panel.settings import UNLABELED, Label, LlmPanelSettings

FIELDS = ("produced", "on_spec", "client_plausible", "pay_worthy", "fabricated")
FLAG = "fabricated_and_worthy"
"""Mark of a vote that called a fabricated deliverable worth paying for; it counts as a rejection."""
Majorities = dict[str, bool | None]


@dataclass(frozen=True, slots=True)
class JudgeSaid:
    """One judge, reduced to its own majorities."""

    judge: str
    fields: Majorities
    """Null: as many for as against, or too few valid votes."""
    label: str | None
    """Of a rejection."""
    votes: int
    valid: int
    flagged: int
    decided: bool
    """Whether ``pay_worthy`` is known, by enough valid votes."""
    causes: list[str] = field(default_factory=list[str])
    """Of the invalid votes."""


@dataclass(frozen=True, slots=True)
class PanelSaid:
    """All judges together. ``accepted`` is null where the panel is tied."""

    accepted: bool | None
    fields: Majorities
    label: str | None
    cause: str | None
    """Of the label."""
    unanimous: bool
    """All judges, every one decided, agree on ``pay_worthy``."""


def effective(content: dict[str, Any]) -> dict[str, Any]:
    """Return a vote's content with the rule applied that what is fabricated is never worth paying for."""
    if content["pay_worthy"] and content["fabricated"]:
        return {**content, "pay_worthy": False, "flag": FLAG}
    return content


def judge_said(judge: str, votes: Sequence[Vote], settings: LlmPanelSettings) -> JudgeSaid:
    """Reduce one judge's votes: each field by its own majority, independently of the others."""
    valid = [v.content for v in votes if v.state is VoteState.VALID]
    enough = len(valid) >= settings.needed_votes
    fields: Majorities = {name: majority([c[name] for c in valid]) if enough else None for name in FIELDS}
    _forbid(fields)
    rejected = fields["pay_worthy"] is False
    return JudgeSaid(
        judge=judge,
        fields=fields,
        label=label_of(valid, settings.labels) if rejected else None,
        votes=len(votes),
        valid=len(valid),
        flagged=sum(c.get("flag") == FLAG for c in valid),
        decided=fields["pay_worthy"] is not None,
        causes=sorted({v.cause or "schema" for v in votes if v.state is not VoteState.VALID}),
    )


def panel_said(said: Sequence[JudgeSaid], votes: Sequence[Vote], settings: LlmPanelSettings) -> PanelSaid | None:
    """Combine the judges that decided; null where they are fewer than the quorum."""
    decided = [s for s in said if s.decided]
    if not decided or len(decided) < settings.needed_judges:
        return None
    fields: Majorities = {name: majority([v for s in decided if (v := s.fields[name]) is not None]) for name in FIELDS}
    worthy = {s.fields["pay_worthy"] for s in decided}
    if settings.panel == "unanimity" and len(worthy) > 1:
        fields["pay_worthy"] = None
    _forbid(fields)
    if fields["pay_worthy"] is None and settings.tie == "reject":
        fields["pay_worthy"] = False
    accepted = fields["pay_worthy"]
    counted = {s.judge for s in decided}
    contents = [v.content for v in votes if v.state is VoteState.VALID and v.judge in counted]
    label = label_of(contents, settings.labels) if accepted is False else None
    return PanelSaid(
        accepted=accepted,
        fields=fields,
        label=label,
        cause=None if label is None else cause_of(label, settings.labels),
        unanimous=len(worthy) == 1 and len(decided) == len(said),
    )


def label_of(contents: Sequence[dict[str, Any]], labels: Sequence[Label]) -> str:
    """Return the label that the rejecting votes name most often, of equals the first of the list; else ``unlabeled``."""
    given = [c["failure_reason"] for c in contents if not c["pay_worthy"] and c["failure_reason"] is not None]
    counts = Counter(given)
    best = max((counts[label.name] for label in labels), default=0)
    return next((label.name for label in labels if best and counts[label.name] == best), UNLABELED)


def cause_of(label: str, labels: Sequence[Label]) -> str:
    return next((known.cause for known in labels if known.name == label), UNLABELED)


def _forbid(fields: Majorities) -> None:
    """What most call fabricated is worth nothing, whatever they say of paying."""
    if fields["fabricated"]:
        fields["pay_worthy"] = False
