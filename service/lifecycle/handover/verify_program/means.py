"""Means over tasks, and how sure they are."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from service.lifecycle.handover.verify_program.reading import PART, Data, Row

SKIPPED = object()
"""A cell that this Python cannot compute: numpy is missing."""


def _numpy() -> Any:
    try:
        return import_module("numpy")
    except ImportError:
        return None


numpy: Any = _numpy()


def by_task(runs: Sequence[Row], value: Callable[[Row], Any]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        one = value(run)
        if one is not None:
            found[run["task_id"]].append(one)
    return {task: math.fsum(values) / len(values) for task, values in sorted(found.items())}


def share(top: float, bottom: float) -> Any:
    return top / bottom if bottom else None


def wilson(passed: int, n: int) -> tuple[Any, Any]:
    """E. B. Wilson (1927)."""
    if not n:
        return None, None
    z, p = 1.959963984540054, passed / n
    middle, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, (middle - spread) / (1 + z * z / n)), min(1.0, (middle + spread) / (1 + z * z / n))


def bootstrap(tops: Any, bottoms: Any, seed: int, draws: int) -> list[tuple[Any, Any]]:
    """Percentile intervals of sum(top) / sum(bottom), columns drawn with replacement, all rows by the same draws."""
    if numpy is None:
        return [(SKIPPED, SKIPPED) for _ in tops]
    tops, bottoms = (numpy.asarray(part, dtype=float).reshape(len(tops), -1) for part in (tops, bottoms))
    n: int = tops.shape[1]
    made: list[Any] = []
    chance = numpy.random.default_rng(seed)
    for start in range(0, draws if n else 0, 250):
        drawn = chance.multinomial(n, numpy.full(n, 1 / n), size=min(250, draws - start)).astype(float)
        top, bottom = drawn @ tops.T, drawn @ bottoms.T
        made.append(numpy.divide(top, bottom, out=numpy.full(top.shape, numpy.nan), where=bottom > 0))
    found: list[tuple[Any, Any]] = []
    for row in range(len(tops)):
        known = numpy.concatenate([part[:, row] for part in made]) if made else numpy.empty(0)
        known = known[~numpy.isnan(known)]
        enough = (bottoms[row] > 0).sum() > 1 and len(known) > 1
        found.append(tuple(map(float, numpy.quantile(known, [0.025, 0.975]))) if enough else (None, None))
    return found


class Scores:
    """Each agent's score on each task, and means over them."""

    def __init__(self, x: Data) -> None:
        self.x = x
        self.rubrics: dict[str, tuple[int, int]] = {}
        for row in x.items():
            if not PART.search(row["criterion"]):
                passed, total = self.rubrics.get(row["run_id"], (0, 0))
                self.rubrics[row["run_id"]] = (passed + bool(row["passed"]), total + 1)
        self.possible: dict[str, float] = {}
        self.totals: dict[str, float] = {}
        for run in x.runs:
            task = run["task_id"]
            if run["max_score"] is not None:
                self.possible[task] = max(run["max_score"], self.possible.get(task, 0.0))
            if run["run_id"] in self.rubrics:
                self.totals[task] = max(float(self.rubrics[run["run_id"]][1]), self.totals.get(task, 0.0))
        self.done = {agent: self._of(runs) for agent, runs in x.by_agent.items()}
        self.tried: dict[str, set[str]] = defaultdict(set)
        for run in x.runs:
            self.tried[run["agent_id"]].add(run["task_id"])

    def _of(self, runs: Sequence[Row]) -> dict[str, tuple[Any, ...]]:
        most = {
            r["run_id"]: self.possible.get(r["task_id"]) if r["max_score"] is None else r["max_score"] for r in runs
        }
        parts = (
            by_task(runs, lambda r: r["counted"]),
            by_task(runs, lambda r: r["counted"] * (most[r["run_id"]] or 0.0)),
            by_task(runs, lambda r: most[r["run_id"]]),
            by_task(
                runs,
                lambda r: float(self.rubrics.get(r["run_id"], (0, 0))[0]) if r["counted"] == r["fraction"] else 0.0,
            ),
            by_task(
                runs,
                lambda r: (
                    float(self.rubrics[r["run_id"]][1])
                    if r["run_id"] in self.rubrics
                    else self.totals.get(r["task_id"])
                ),
            ),
        )
        return {task: tuple(part.get(task) for part in parts) for task in parts[0]}

    def expected(self, agent: str, tasks: Sequence[str]) -> list[str]:
        refuse = self.x.missing == "refuse"
        return [t for t in tasks if t in self.done[agent] or t not in self.tried[agent] or refuse]

    def figures(self, agent: str, tasks: Sequence[str]) -> Row:
        expected, done = self.expected(agent, tasks), self.done[agent]
        there, absent = [done[t] for t in expected if t in done], [t for t in expected if t not in done]
        zero = absent if self.x.missing == "zero" else []
        refused, n = self.x.missing == "refuse" and absent, len(there) + len(zero)
        possible = [s[2] for s in there] + [self.possible.get(t) for t in zero]
        rubrics = [s[4] for s in there] + [self.totals.get(t) for t in zero]
        known = None not in possible and not refused
        return {
            "tasks": n,
            "missing": len(absent),
            "macro": None if refused else share(math.fsum(s[0] for s in there), n),
            "micro": share(math.fsum(s[1] for s in there), math.fsum(possible)) if known else None,
            "rubric_pass_rate": None
            if refused or None in rubrics
            else share(math.fsum(s[3] for s in there), math.fsum(rubrics)),
        }

    def intervals(self, agents: Sequence[str], tasks: Sequence[str]) -> dict[str, tuple[Any, Any]]:
        tops: list[list[float]] = []
        bottoms: list[list[float]] = []
        for agent in agents:
            done, expected = self.done[agent], set(self.expected(agent, tasks))
            tops.append([done[t][0] if t in expected and t in done else 0.0 for t in tasks])
            bottoms.append([float(t in expected and (t in done or self.x.missing == "zero")) for t in tasks])
        found = bootstrap(tops, bottoms, self.x.seed, self.x.draws)
        return {
            a: found[n] if self.figures(a, tasks)["macro"] is not None else (None, None) for n, a in enumerate(agents)
        }
