"""What every report starts from: the result tables as records, with the reader's choices applied."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from datetime import date, datetime
from functools import cached_property
from math import fsum
from typing import Any, TypeVar, cast

from service.domain.benchmarks import ItemStatus
from service.domain.reports import ReportHeader, ReportSettings
from service.domain.run_states import Flag
from service.reporting.frames import Tables
from service.reporting.rubric_scores import Missing

T = TypeVar("T")
CONTAMINATED = "contaminated"
DISPUTED = "disputed"
Facet = str | float | list[str]


@dataclass(frozen=True, slots=True)
class Agent:
    agent_id: str
    label: str
    scaffold: str
    """name@version"""
    model: str | None
    vendor: str | None
    family: str | None
    released_on: date | None
    effort: str | None

    @property
    def scaffold_name(self) -> str:
        return self.scaffold.partition("@")[0]


@dataclass(frozen=True, slots=True)
class Task:
    task_id: str
    name: str
    item_key: str | None
    status: str | None
    check: str | None
    facets: Mapping[str, Facet]
    price_usd: float | None
    human_time_s: float | None

    def values(self, facet: str) -> list[str]:
        """Return the facet's values as text; none where the task does not have it."""
        value = self.facets.get(facet)
        if value is None:
            return []
        if isinstance(value, list):
            return value
        return [value if isinstance(value, str) else f"{value:g}"]


@dataclass(frozen=True, slots=True)
class Run:
    run_id: str
    evaluation_id: str | None
    task_id: str
    agent_id: str
    sample: int
    attempts: int
    outcome: str | None
    ended_because: str | None
    flags: frozenset[str]
    plan: str
    max_score: float | None
    fraction: float | None
    counted: float | None
    exclusion: str | None
    wall_s: float | None
    working_s: float | None
    turns: int
    tool_calls: int
    events: int
    cost_usd: float | None
    cost_basis: str | None
    service_cost_usd: float | None
    cost_usd_all_attempts: float | None
    ended_at: datetime | None
    passes_at: float = 1.0
    """What it must count to be solved, or accepted."""

    @property
    def value(self) -> float:
        """What it counts, of a run that counts."""
        return cast("float", self.counted)

    @property
    def spent_usd(self) -> float | None:
        """Models and services of the graded attempt; null where the models' part is not known."""
        return None if self.cost_usd is None else self.cost_usd + (self.service_cost_usd or 0.0)

    @property
    def solved(self) -> bool:
        return self.value >= self.passes_at


@dataclass(frozen=True)
class Data:
    header: ReportHeader
    settings: ReportSettings
    tables: Tables
    agents: dict[str, Agent]
    """By id, in the order of their labels."""
    tasks: dict[str, Task]
    """By id, in their order."""
    runs: list[Run]

    @property
    def seed(self) -> int:
        return self.header.seed if self.settings.seed is None else self.settings.seed

    @property
    def missing(self) -> Missing:
        return self.settings.missing or self.header.policies.missing

    @cached_property
    def counted(self) -> list[Run]:
        return [r for r in self.runs if r.counted is not None]

    @cached_property
    def excluded(self) -> dict[str, int]:
        return dict(sorted(Counter(r.exclusion or "unknown" for r in self.runs if r.counted is None).items()))

    @cached_property
    def by_agent(self) -> dict[str, list[Run]]:
        """Return the counted runs of every agent, of agents without any too."""
        found: dict[str, list[Run]] = {agent: [] for agent in self.agents}
        for run in self.counted:
            found[run.agent_id].append(run)
        return found

    @cached_property
    def attempted(self) -> list[str]:
        """Return the tasks that any agent has a run of, in their order: what agents are held against."""
        there = {run.task_id for run in self.runs}
        return [task for task in self.tasks if task in there]

    def tried(self, agent_id: str) -> set[str]:
        """Return the tasks that the agent has any run of, counted or not."""
        return self._tried.get(agent_id, set())

    @cached_property
    def _tried(self) -> dict[str, set[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        for run in self.runs:
            found[run.agent_id].add(run.task_id)
        return dict(found)

    def chosen(self, name: str) -> Agent | None:
        """Return the agent with this label or id."""
        return next((a for a in self.agents.values() if name in {a.agent_id, a.label}), None)


def gather(tables: Tables, header: ReportHeader, settings: ReportSettings, passes_at: float = 1.0) -> Data:
    """Read the tables ``runs``, ``agents`` and ``tasks``; runs that the settings leave out become excluded, with that reason.

    ``passes_at``: what a run must count to be solved.
    """
    tasks = {t.task_id: t for t in sorted(_records(tables, "tasks", _task), key=lambda t: t.task_id)}
    agents = {a.agent_id: a for a in sorted(_records(tables, "agents", _agent), key=lambda a: (a.label, a.agent_id))}
    runs = [r for r in _runs(tables) if r.exclusion not in {"control", "preflight"}]
    runs = sorted(
        (replace(_chosen(r, tasks[r.task_id], settings), passes_at=passes_at) for r in runs), key=lambda r: r.run_id
    )
    used = {r.agent_id for r in runs}
    return Data(header, settings, tables, {k: a for k, a in agents.items() if k in used}, tasks, runs)


def by_task(runs: Sequence[Run], value: Callable[[Run], float | None]) -> dict[str, float]:
    """Return the mean over samples for each task, in the order of the tasks; null values are left out."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for run in runs:
        if (one := value(run)) is not None:
            found[run.task_id].append(one)
    return {task: fsum(found[task]) / len(found[task]) for task in sorted(found)}


def mapping(text: str | None) -> dict[str, Any]:
    """Return a JSON column's map; empty for null, and for what is none."""
    value = None if text is None else json.loads(text)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def listing(text: str | None) -> list[str]:
    """Return a JSON column's list of texts; empty for null, and for what is none."""
    value = None if text is None else json.loads(text)
    return [str(v) for v in cast("list[Any]", value)] if isinstance(value, list) else []


def _records(tables: Tables, name: str, make: Callable[[dict[str, Any]], T]) -> list[T]:
    return [make(row) for row in tables[name].iter_rows(named=True)]


def _chosen(run: Run, task: Task, settings: ReportSettings) -> Run:
    if run.counted is None:
        return run
    if settings.contaminated == "exclude" and Flag.CONTAMINATION_SUSPECTED in run.flags:
        return replace(run, counted=None, exclusion=CONTAMINATED)
    if settings.disputed == "exclude" and task.status == ItemStatus.DISPUTED:
        return replace(run, counted=None, exclusion=DISPUTED)
    return run


def _agent(row: dict[str, Any]) -> Agent:
    names = ("agent_id", "label", "scaffold", "model", "vendor", "family", "released_on", "effort")
    return Agent(**{name: row[name] for name in names})


def _task(row: dict[str, Any]) -> Task:
    names = ("task_id", "name", "item_key", "status", "check", "price_usd", "human_time_s")
    return Task(**{name: row[name] for name in names}, facets=mapping(row["facets"]))


_RUN = [field.name for field in fields(Run) if field.default is MISSING]
_FLAGS = _RUN.index("flags")


def _runs(tables: Tables) -> list[Run]:
    known: dict[str, frozenset[str]] = {}
    found: list[Run] = []
    for row in tables["runs"].select(_RUN).iter_rows():
        text, values = row[_FLAGS], list(row)
        if text not in known:
            known[text] = frozenset(listing(text))
        values[_FLAGS] = known[text]
        found.append(Run(*values))
    return found
