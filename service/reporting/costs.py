"""What a score costs, what effort brings, and what the scaffold adds: figures over agents that are scored already."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from service.reporting.intervals import Interval, mean_intervals


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
    interval: Interval | None


def scaffold_deltas(agents: Sequence[Scored], seed: int, draws: int) -> list[Delta]:
    """Return, for each pair of agents with one model and effort in two scaffolds, the paired difference of scores."""
    pairs = [(a, b) for n, a in enumerate(agents) for b in agents[n + 1 :] if _differ_in_scaffold(a, b)]
    steps = [_steps(first, second) for first, second in pairs]
    return [
        Delta(
            model=str(first.model),
            effort=effort_place(first.effort)[1],
            first=first,
            second=second,
            tasks=len(mine),
            mean=fsum(mine) / len(mine) if mine else None,
            interval=interval,
        )
        for (first, second), mine, interval in zip(pairs, steps, mean_intervals(steps, seed, draws), strict=True)
    ]


def _differ_in_scaffold(first: Scored, second: Scored) -> bool:
    same = first.model is not None and (first.model, first.effort) == (second.model, second.effort)
    return same and first.scaffold != second.scaffold


def _steps(first: Scored, second: Scored) -> list[float]:
    tasks = sorted(first.by_task.keys() & second.by_task.keys())
    return [second.by_task[t] - first.by_task[t] for t in tasks]
