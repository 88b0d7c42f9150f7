"""Rows of evaluations, their agents, tasks and log."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from service.domain.benchmarks import ItemStatus
from service.domain.evaluations import (
    Concurrency,
    EvaluationBudget,
    EvaluationSpec,
    EvaluationState,
    RunSettings,
    StopRules,
)
from service.store.rows import Converters, Json, Row

Counts = dict[str, dict[str, int]]
"""phase | outcome | ended_because → value → runs; values that nothing has may be missing or 0."""


@dataclass(frozen=True, slots=True)
class ListedEvaluation(Row):
    """An evaluation without what may be large: what was asked for, what it means, its estimate."""

    id: str
    project_id: str
    name: str
    state: EvaluationState
    benchmark_id: str | None
    plan: str
    """``name@version``"""
    seed: int
    total: int
    """Runs that exist."""
    counts: Counts
    spend: Json
    budget: EvaluationBudget
    stop_rules: StopRules
    concurrency: Concurrency
    priority: int
    hold: Json | None
    """Of the whole."""
    labels: dict[str, str]
    notes: str
    author: str
    revision: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    updated_at: datetime | None
    CONVERT: ClassVar[Converters] = {
        "state": EvaluationState,
        "budget": EvaluationBudget.model_validate,
        "stop_rules": StopRules.model_validate,
        "concurrency": Concurrency.model_validate,
    }


@dataclass(frozen=True, slots=True)
class EvaluationRow(ListedEvaluation):
    spec: EvaluationSpec
    """As it was asked for: what can be changed later has columns of its own."""
    resolved: Json
    estimate: Json
    preflight: Json | None
    CONVERT: ClassVar[Converters] = {**ListedEvaluation.CONVERT, "spec": EvaluationSpec.model_validate}


@dataclass(frozen=True, slots=True)
class MemberRow(Row):
    """An agent in an evaluation, with its label."""

    evaluation_id: str
    agent_id: str
    agent_label: str
    position: int
    samples: int
    settings: RunSettings
    """Laid over the evaluation's."""
    total: int
    counts: Counts
    hold: Json | None
    rules_from: datetime | None
    created_at: datetime
    CONVERT: ClassVar[Converters] = {"settings": RunSettings.model_validate}


@dataclass(frozen=True, slots=True)
class EvaluationTaskRow(Row):
    evaluation_id: str
    task_id: str
    position: int
    item_key: str
    """Without a benchmark: the task's id."""
    status: ItemStatus
    """When it was drafted."""
    CONVERT: ClassVar[Converters] = {"status": ItemStatus}


@dataclass(frozen=True, slots=True)
class LogRow(Row):
    id: int
    evaluation_id: str
    actor: str
    """API token, or the process that did it."""
    action: str
    detail: Json
    created_at: datetime
