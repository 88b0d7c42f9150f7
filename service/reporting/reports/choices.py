"""One agent per model for a main table, as the reader chose it (NEEDS A7, A17)."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from service.domain.errors import Invalid
from service.domain.tasks import Strict
from service.reporting import best_scaffold
from service.reporting.costs import Scored
from service.reporting.reports.data import Data
from service.reporting.reports.scores import Scores

Name = Annotated[str, Field(min_length=1, max_length=200)]


class BestScaffold(Strict):
    """The rule; never the best on the data that the table shows."""

    rule: Literal["list", "vendor", "split"]
    agents: list[Name] = Field(default_factory=list[str], max_length=200)
    """Rule ``list``: labels."""
    scaffolds: dict[str, Name] = Field(default_factory=dict[str, str], max_length=100)
    """Rule ``vendor``: vendor → scaffold's name; ``*`` for all others."""
    facet: Name | None = None
    """Rule ``split``: agents are chosen by their score on the tasks with this facet …"""
    value: Name | None = None
    """… of this value, and shown on the others."""


def chosen(data: Data, scores: Scores, choice: BestScaffold) -> tuple[best_scaffold.Chosen, list[str]]:
    """Return the agents, and the tasks that they are shown on. Raises Invalid for a rule that fits nothing here."""
    if choice.rule == "split":
        return _by_split(data, scores, choice)
    tasks = data.attempted
    return _by_rule(scores.scored(tasks), choice), tasks


def reasons(found: best_scaffold.Chosen) -> dict[str, int]:
    """Return how many agents are left out, by reason."""
    return dict(sorted(Counter(found.left_out.values()).items()))


def _by_rule(scored: Sequence[Scored], choice: BestScaffold) -> best_scaffold.Chosen:
    if choice.rule == "vendor":
        return best_scaffold.by_vendor(scored, choice.scaffolds)
    try:
        return best_scaffold.by_list(scored, choice.agents)
    except ValueError as error:
        raise Invalid("unknown_agent", f"options.best_scaffold: {error}") from error


def _by_split(data: Data, scores: Scores, choice: BestScaffold) -> tuple[best_scaffold.Chosen, list[str]]:
    if choice.facet is None or choice.value is None:
        raise Invalid("invalid_option", "options.best_scaffold: rule split needs facet and value")
    there = [t for t in data.attempted if choice.value in data.tasks[t].values(choice.facet)]
    shown = [t for t in data.attempted if t not in set(there)]
    if not there or not shown:
        raise Invalid(
            "invalid_option", f"options.best_scaffold: {choice.facet} = {choice.value} parts no tasks from others"
        )
    found = {agent.label: scores.figures(a, there).macro for a, agent in data.agents.items() if scores.done[a]}
    elsewhere = {label: score for label, score in found.items() if score is not None}
    where = f"tasks with {choice.facet} = {choice.value}"
    return best_scaffold.by_other_tasks(scores.scored(shown), elsewhere, where), shown
