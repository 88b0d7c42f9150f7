"""Whether an agent's runs look broken rather than weak: decided from its ended runs, in the order in which they ended (NEEDS B10)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from service.domain.evaluations import STOPPING, StopRules
from service.domain.run_states import EndedBecause

EXAMPLES = 5
"""Runs that are named with a decision."""


class Bad(StrEnum):
    """Why a run counts as broken."""

    SCAFFOLD_ERROR = "scaffold_error"
    PROVISION_FAILED = "provision_failed"
    EMPTY = "delivered_nothing"
    REFUSED = "provider_refused"


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run whose agent phase is over and whose deliverable, if there is one, is sealed."""

    run_id: str
    ended_because: EndedBecause | None
    files: int
    """Delivered."""
    wall_s: float | None
    """Of the agent phase; null: it never began."""
    last_status: int | None = None
    """HTTP status of its last model request, where the provider answered it; null: none was made, or nobody answered."""


@dataclass(frozen=True, slots=True)
class Broken:
    """What the rules found."""

    rule: str
    """first | last"""
    bad: int
    of: int
    causes: dict[str, int]
    run_ids: tuple[str, ...]
    """Examples, newest first."""

    @property
    def detail(self) -> str:
        causes = ", ".join(f"{n} {cause}" for cause, n in self.causes.items())
        return f"{self.bad} of its {self.rule} {self.of} ended runs look broken: {causes}"


def why_bad(rules: StopRules, run: EndedRun) -> Bad | None:
    """Return why the run counts as broken; null if it does not."""
    if run.ended_because in STOPPING:
        return Bad(run.ended_because)
    if run.last_status is not None and 400 <= run.last_status < 500 and run.last_status != 429:
        return Bad.REFUSED
    if run.files == 0 and run.wall_s is not None and run.wall_s < rules.empty_s:
        return Bad.EMPTY
    return None


def decide(rules: StopRules, first: Sequence[EndedRun], last: Sequence[EndedRun]) -> Broken | None:
    """Return what is wrong with the agent; null if nothing is, or if the rules are off.

    ``first`` and ``last``: its ended runs in order, at least the first ``rules.first`` and the last ``rules.last`` of them. The
    first rule speaks as soon as enough were bad, the second when so many have ended.
    """
    if not rules.enabled:
        return None
    beginning, end = _found(rules, first[: rules.first]), _found(rules, last[-rules.last :])
    if len(beginning.bad) >= rules.first_bad:
        return beginning.broken("first")
    if end.of >= rules.last and len(end.bad) >= rules.last_share * end.of:
        return end.broken("last")
    return None


@dataclass(frozen=True, slots=True)
class _Found:
    of: int
    bad: list[tuple[str, Bad]]

    def broken(self, rule: str) -> Broken:
        causes = Counter(cause.value for _, cause in self.bad)
        newest = tuple(run_id for run_id, _ in reversed(self.bad))
        return Broken(rule, len(self.bad), self.of, dict(causes.most_common()), newest[:EXAMPLES])


def _found(rules: StopRules, ended: Sequence[EndedRun]) -> _Found:
    why = [(run.run_id, why_bad(rules, run)) for run in ended]
    return _Found(len(ended), [(run_id, bad) for run_id, bad in why if bad is not None])
