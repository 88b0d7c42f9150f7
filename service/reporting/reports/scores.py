"""Each agent's score on each task, and from it means with their intervals: what several reports show."""

from collections.abc import Mapping, Sequence

import numpy as np

from service.reporting.costs import Scored
from service.reporting.intervals import Interval, Rows, cluster_ratios
from service.reporting.reports import gradings
from service.reporting.reports.data import Data, Run, by_task
from service.reporting.reports.gradings import Passed
from service.reporting.rubric_scores import Expected, RubricScores, TaskScore, mean_score, rubric_scores


class Scores:
    """Of all agents, with the policy for missing tasks.

    A task is *missing* where the agent has no run of it at all. A run that nobody could grade, or that infrastructure broke, is
    excluded and never becomes a score: its task is left out of the agent's figures under every policy but ``refuse``.
    """

    def __init__(self, data: Data) -> None:
        self.data = data
        self._rubrics = gradings.rubrics(data)
        self._possible = _most(data)
        self._totals = _totals(data, self._rubrics)
        self.done = {agent: self._of(runs) for agent, runs in data.by_agent.items()}
        self._known: dict[tuple[str, tuple[str, ...]], RubricScores] = {}

    def _of(self, runs: Sequence[Run]) -> dict[str, TaskScore]:
        found: dict[str, list[TaskScore]] = {}
        for run in runs:
            found.setdefault(run.task_id, []).append(self._score(run))
        return {task: mean_score(found[task]) for task in sorted(found)}

    def _score(self, run: Run) -> TaskScore:
        possible = self._possible.get(run.task_id) if run.max_score is None else run.max_score
        own = self._rubrics.get(run.run_id)
        as_it_is = own is not None and run.counted == run.fraction
        total = self._totals.get(run.task_id) if own is None else float(own.total)
        return TaskScore(
            fraction=run.value,
            earned=run.value * (possible or 0.0),
            possible=possible,
            rubrics_passed=float(own.passed) if own is not None and as_it_is else 0.0,
            rubrics=total,
        )

    def expected(self, agent: str, tasks: Sequence[str]) -> dict[str, Expected]:
        """Return what the agent is held against, out of ``tasks``."""
        done, tried = self.done[agent], self.data.tried(agent)
        refuse = self.data.missing == "refuse"
        return {
            task: Expected(self._possible.get(task), self._totals.get(task))
            for task in tasks
            if task in done or task not in tried or refuse
        }

    def known_rubrics(self, tasks: Sequence[str]) -> list[float | None]:
        """Return how many rubrics each task has; null where nobody knows."""
        return [self._totals.get(task) for task in tasks]

    def figures(self, agent: str, tasks: Sequence[str]) -> RubricScores:
        key = agent, tuple(tasks)
        if key not in self._known:
            self._known[key] = rubric_scores(self.done[agent], self.expected(agent, tasks), self.data.missing)
        return self._known[key]

    def intervals(self, agents: Sequence[str], tasks: Sequence[str]) -> dict[str, Interval | None]:
        """Return the bootstrap interval of each agent's macro score over ``tasks``."""
        place = {task: n for n, task in enumerate(tasks)}
        tops, bottoms = (np.zeros((len(agents), len(tasks))) for _ in range(2))
        for row, agent in enumerate(agents):
            done = self.done[agent]
            for task in self.expected(agent, tasks):
                tops[row, place[task]] = done[task].fraction if task in done else 0.0
                bottoms[row, place[task]] = float(task in done or self.data.missing == "zero")
        found = cluster_ratios(Rows(tops, bottoms), self.data.seed, self.data.settings.draws)
        macro = {agent: self.figures(agent, tasks).macro for agent in agents}
        return {a: None if macro[a] is None else one for a, one in zip(agents, found, strict=True)}

    def scored(self, tasks: Sequence[str]) -> list[Scored]:
        """Return each agent with its macro score, what one pass over the tasks cost it, and its score on each task."""
        wanted = set(tasks)
        return [self._scored(agent, wanted, tasks) for agent in self.data.agents]

    def _scored(self, agent_id: str, wanted: set[str], tasks: Sequence[str]) -> Scored:
        agent = self.data.agents[agent_id]
        runs = [r for r in self.data.by_agent[agent_id] if r.task_id in wanted]
        costs = by_task(runs, lambda r: r.spent_usd)
        known = bool(runs) and all(r.spent_usd is not None for r in runs)
        return Scored(
            agent=agent.label,
            scaffold=agent.scaffold_name,
            model=agent.model,
            vendor=agent.vendor,
            effort=agent.effort,
            score=self.figures(agent_id, tasks).macro,
            cost_usd=sum(costs.values()) if known else None,
            by_task={t: s.fraction for t, s in self.done[agent_id].items() if t in wanted},
        )


def _most(data: Data) -> dict[str, float]:
    """Return what each task could give: the most that any graded run of it says."""
    found: dict[str, float] = {}
    for run in data.runs:
        if run.max_score is not None:
            found[run.task_id] = max(run.max_score, found.get(run.task_id, 0.0))
    return found


def _totals(data: Data, rubrics: Mapping[str, Passed]) -> dict[str, float]:
    found: dict[str, float] = {}
    for run in data.runs:
        if run.run_id in rubrics:
            found[run.task_id] = max(float(rubrics[run.run_id].total), found.get(run.task_id, 0.0))
    return found
