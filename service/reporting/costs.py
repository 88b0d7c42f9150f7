"""What a score costs, what effort brings, and what the scaffold adds: figures over agents that are scored already."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from service.reporting.intervals import paired_interval


@dataclass(frozen=True, slots=True)
class Scored:
    """One agent."""

    agent: str
    scaffold: str
    """Name, without its version."""
    model: str | None
    vendor: str | None
    effort: str | None
    score: float | None
    cost_usd: float | None
    """Of one pass over the tasks; null: not known for every run."""
    by_task: Mapping[str, float]
    """Task → score, mean over samples."""


def frontier(agents: Iterable[Scored]) -> set[str]:
    """Return the agents that no other one beats: none scores at least as much for at most as much, one of both better.

    Agents without a score or a cost take no part.
    """
    known = [(a.agent, a.cost_usd, a.score) for a in agents if a.cost_usd is not None and a.score is not None]
    return {
        name
        for name, cost, score in known
        if not any(c <= cost and s >= score and (c < cost or s > score) for _, c, s in known)
    }


EFFORTS = ("none", "minimal", "low", "medium", "default", "high", "xhigh", "max")


def effort_place(effort: str | None) -> tuple[int, str]:
    """Return a key that orders levels of reasoning effort; unknown names come last, null is ``default``."""
    name = effort or "default"
    return (EFFORTS.index(name) if name in EFFORTS else len(EFFORTS)), name


def effort_sweeps(agents: Sequence[Scored]) -> list[list[Scored]]:
    """Return the groups of agents that differ in effort alone (same scaffold, same model), each in the order of effort."""
    groups: dict[tuple[str, str | None], list[Scored]] = {}
    for agent in agents:
        groups.setdefault((agent.scaffold, agent.model), []).append(agent)
    sweeps = [g for g in groups.values() if len({effort_place(a.effort) for a in g}) > 1]
    return [sorted(g, key=lambda a: (effort_place(a.effort), a.agent)) for g in sweeps]


@dataclass(frozen=True, slots=True)
class Delta:
    model: str
    effort: str
    first: Scored
    second: Scored
    tasks: int
    """That both did."""
    mean: float | None
    """Second less first, paired by task."""
    interval: tuple[float, float] | None


def scaffold_deltas(agents: Sequence[Scored], seed: int, draws: int) -> list[Delta]:
    """Return, for each pair of agents with one model and effort in two scaffolds, the paired difference of scores."""
    found: list[Delta] = []
    for n, first in enumerate(agents):
        for second in agents[n + 1 :]:
            same = first.model is not None and first.model == second.model
            if same and first.effort == second.effort and first.scaffold != second.scaffold:
                found.append(_delta(first, second, seed, draws))
    return found


def _delta(first: Scored, second: Scored, seed: int, draws: int) -> Delta:
    tasks = sorted(first.by_task.keys() & second.by_task.keys())
    before, after = [first.by_task[t] for t in tasks], [second.by_task[t] for t in tasks]
    mean = fsum(b - a for a, b in zip(before, after, strict=True)) / len(tasks) if tasks else None
    interval = paired_interval(before, after, seed, draws)
    return Delta(str(first.model), effort_place(first.effort)[1], first, second, len(tasks), mean, interval)
