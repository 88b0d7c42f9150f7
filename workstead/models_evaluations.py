"""What evaluations, their reports and their exports answer."""

from datetime import datetime
from typing import Any

from pydantic import Field

from workstead.models import Model

Counts = dict[str, dict[str, int]]
"""``phase``, ``outcome``, ``ended_because`` → value → runs."""
UNDER_WAY = frozenset({"checking", "running"})


class EvaluationAgent(Model):
    """One row of its tables."""

    id: str
    label: str = ""
    samples: int = 1
    total: int = 0
    counts: Counts = Field(default_factory=dict[str, dict[str, int]])
    hold: dict[str, Any] | None = None


class Evaluation(Model):
    id: str
    name: str = ""
    state: str = "draft"
    """draft | checking | running | done | stopped"""
    benchmark_id: str | None = None
    plan: str = ""
    seed: int = 0
    total: int = 0
    """Runs that exist."""
    counts: Counts = Field(default_factory=dict[str, dict[str, int]])
    agents: list[EvaluationAgent] = Field(default_factory=list[EvaluationAgent])
    """Empty in lists."""
    spec: dict[str, Any] | None = None
    """As it was asked for; this and what follows is null in lists."""
    resolved: dict[str, Any] | None = None
    estimate: dict[str, Any] | None = None
    warnings: list[dict[str, Any]] | None = None
    preflight: dict[str, Any] | None = None
    spend: dict[str, Any] = Field(default_factory=dict[str, Any])
    budget: dict[str, Any] = Field(default_factory=dict[str, Any])
    stop_rules: dict[str, Any] = Field(default_factory=dict[str, Any])
    concurrency: dict[str, Any] = Field(default_factory=dict[str, Any])
    priority: int = 0
    holds: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    eta: dict[str, Any] | None = None
    """p50_at, p90_at, basis; null: not known."""
    throughput_per_h: float | None = None
    changed: dict[str, int] | None = None
    """What the request did: ``made``, ``cancelled``, ``stopping`` → runs."""
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    notes: str = ""
    author: str = ""
    revision: int = 0
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def under_way(self) -> bool:
        return self.state in UNDER_WAY

    @property
    def summed(self) -> bool:
        """Whether ``spend`` holds what all runs have taken as they are now."""
        at: str | None = self.spend.get("at")
        return self.updated_at is None or (at is not None and datetime.fromisoformat(at) >= self.updated_at)

    def of_phase(self, *phases: str) -> int:
        """Return how many runs are in these phases."""
        return sum(self.counts.get("phase", {}).get(phase, 0) for phase in phases)

    @property
    def wanted(self) -> int:
        """Return how many graded runs a whole evaluation has; more exist where some were cancelled or invalidated and redone."""
        tasks: list[Any] | None = (self.resolved or {}).get("tasks")
        return self.total if tasks is None else len(tasks) * sum(agent.samples for agent in self.agents)

    @property
    def graded(self) -> int:
        return self.counts.get("outcome", {}).get("graded", 0)


class LogEntry(Model):
    """What somebody, or a process, did to an evaluation."""

    id: int = 0
    actor: str = ""
    action: str = ""
    detail: dict[str, Any] = Field(default_factory=dict[str, Any])
    created_at: datetime | None = None


class ReportTable(Model):
    name: str
    title: str = ""
    columns: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """name, title, unit, interval"""
    rows: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    n: int = 0
    unit: str = "runs"
    excluded: dict[str, int] = Field(default_factory=dict[str, int])
    """Why → how many were left out."""
    method: str = ""
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    notes: list[str] = Field(default_factory=list[str])


class Report(Model):
    kind: str = ""
    header: dict[str, Any] = Field(default_factory=dict[str, Any])
    validity: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """What changes a comparison: name, text, count, of, by_agent, warning."""
    tables: list[ReportTable] = Field(default_factory=list[ReportTable])


class RunNote(Model):
    id: str
    run_id: str = ""
    seq: int | None = None
    """Event that it is about; null: the run."""
    author: str = ""
    body: str = ""
    tags: list[str] = Field(default_factory=list[str])
    created_at: datetime | None = None
