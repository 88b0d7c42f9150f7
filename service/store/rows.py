"""What the store hands out: frozen rows. Field names are the columns' (service/store/tables.py), JSON parsed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar, Generic, Self, TypeVar

from sqlalchemy import RowMapping

from service.domain.agents import AgentSpec, Driver, ScaffoldManifest
from service.domain.benchmarks import BenchmarkHead, ItemStatus
from service.domain.evaluations import EvaluationBudget
from service.domain.integrity import IntegrityReport, ReportState
from service.domain.limits import Limits
from service.domain.models import CostBasis
from service.domain.operations import OperationState
from service.domain.policies import NetworkRules, ProviderTools, RunBudget
from service.domain.run_states import AttemptState, EndedBecause, Outcome, Phase, StopMode
from service.domain.tasks import TaskManifest
from service.domain.verdicts import VerdictState

T = TypeVar("T")
Converters = Mapping[str, Callable[[Any], Any]]
Json = dict[str, Any]
Cursor = tuple[str, str]
"""(value of the sort key as text, id) of the last row seen. JSON-able; clients get it in an opaque form."""


class Row:
    """Builds a dataclass from a row of the database; ``CONVERT`` parses the columns that are not null."""

    __slots__ = ()
    CONVERT: ClassVar[Converters] = {}
    APART: ClassVar[frozenset[str]] = frozenset()
    """Fields that come from other tables."""

    @classmethod
    def of(cls, row: RowMapping) -> Self:
        values = {f.name: row[f.name] for f in fields(cls) if f.name not in cls.APART}  # pyright: ignore[reportArgumentType] - subclasses are dataclasses
        for name, parse in cls.CONVERT.items():
            if values[name] is not None:
                values[name] = parse(values[name])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Project(Row):
    id: str
    name: str
    untrusted: bool
    created_at: datetime
    max_runs: int | None = None
    """Most live runs at once; null = no limit of its own."""
    budget: EvaluationBudget | None = None
    spend: Json = field(default_factory=dict[str, Any])
    CONVERT: ClassVar[Converters] = {"budget": EvaluationBudget.model_validate}


@dataclass(frozen=True, slots=True)
class TokenRow(Row):
    """A token without its secret. ``attempt`` and ``run_id`` are set for kind ``run`` only."""

    id: str
    project_id: str
    kind: str
    prefix: str
    scopes: tuple[str, ...]
    note: str
    run_id: str | None
    attempt: int | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    CONVERT: ClassVar[Converters] = {"scopes": tuple}


@dataclass(frozen=True, slots=True)
class TaskRow(Row):
    id: str
    project_id: str
    name: str
    digest: str
    manifest: TaskManifest
    created_at: datetime
    CONVERT: ClassVar[Converters] = {"manifest": TaskManifest.model_validate}


@dataclass(frozen=True, slots=True)
class ScaffoldRow(Row):
    id: str
    project_id: str
    name: str
    version: str
    digest: str
    manifest: ScaffoldManifest
    created_at: datetime
    conformance: Json | None
    CONVERT: ClassVar[Converters] = {"manifest": ScaffoldManifest.model_validate}


@dataclass(frozen=True, slots=True)
class AgentRow(Row):
    id: str
    project_id: str
    scaffold_id: str
    digest: str
    label: str
    spec: AgentSpec
    created_at: datetime
    CONVERT: ClassVar[Converters] = {"spec": AgentSpec.model_validate}


@dataclass(frozen=True, slots=True)
class RunRow(Row):
    """A run with its task's name and digest and its agent's label. Durations in seconds, null while unknown."""

    id: str
    project_id: str
    revision: int
    phase: Phase
    hold: Json | None
    outcome: Outcome | None
    ended_because: EndedBecause | None
    task_id: str
    task_name: str
    task_digest: str
    agent_id: str
    agent_label: str
    sample: int
    attempt: int
    max_attempts: int
    priority: int
    derived_from: str | None
    limits: Limits
    environment: str
    kit: str | None
    runtime: str | None
    labels: dict[str, str]
    flags: tuple[str, ...]
    stop_mode: StopMode | None
    stop_requested_at: datetime | None
    last_seq: int
    event_count: int
    output_text_bytes: int
    last_event_at: datetime | None
    turns: int
    tool_calls: int
    doing: str | None
    queue_s: float | None
    provision_s: float | None
    wall_s: float | None
    waited_for_host_s: float
    memory_peak_bytes: int | None
    disk_used_bytes: int | None
    deliverable_digest: str | None
    deliverable_files: int
    deliverable_bytes: int
    deliverable_problems: int
    driver: Driver
    model_id: str | None
    budget: RunBudget
    network: NetworkRules
    provider_tools: ProviderTools
    replay_of: str | None
    evaluation_id: str | None
    keep_on_failure_s: float
    requests: int
    """Of the latest attempt, as all that follows: what the ledger has settled."""
    input_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: Decimal | None
    cost_basis: CostBasis | None
    price_date: date | None
    cost_usd_all_attempts: Decimal | None
    service_calls: int
    service_cost_usd: Decimal | None
    provider_wait_s: float
    plan: str
    verdict_state: VerdictState
    score: float | None
    max_score: float | None
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    deadline_at: datetime | None
    ended_at: datetime | None
    graded_at: datetime | None
    updated_at: datetime
    CONVERT: ClassVar[Converters] = {
        "phase": Phase,
        "outcome": Outcome,
        "ended_because": EndedBecause,
        "limits": Limits.model_validate,
        "flags": tuple,
        "stop_mode": StopMode,
        "driver": Driver,
        "budget": RunBudget.model_validate,
        "network": NetworkRules.model_validate,
        "provider_tools": ProviderTools,
        "cost_basis": CostBasis,
        "verdict_state": VerdictState,
    }


@dataclass(frozen=True, slots=True)
class AttemptRow(Row):
    """An attempt as its holder knows it; ``fence`` is checked by every write that is given this row."""

    run_id: str
    n: int
    state: AttemptState
    fence: int
    host_id: str
    sandbox_id: str | None
    runtime: str | None
    environment_image: str | None
    kit_image: str | None
    argv: list[str] | None
    env: dict[str, str] | None
    attestation: Json | None
    provenance: Json
    ended_because: EndedBecause | None
    evidence: Json | None
    logs: Json
    offsets: dict[str, int]
    created_at: datetime
    bound_at: datetime | None
    started_at: datetime | None
    deadline_at: datetime | None
    ended_at: datetime | None
    collected_at: datetime | None
    released_at: datetime | None
    CONVERT: ClassVar[Converters] = {"state": AttemptState, "ended_because": EndedBecause}


@dataclass(frozen=True, slots=True)
class ArtifactRow(Row):
    """One entry of the sealed deliverable; ``position`` is its place in the manifest, from 0."""

    run_id: str
    position: int
    path: str
    kind: str
    size_bytes: int
    sha256: str | None
    mime: str | None
    link_target: str | None
    mtime: float | None


@dataclass(frozen=True, slots=True)
class CriterionRow(Row):
    grading_id: str
    position: int
    criterion: str
    passed: bool | None
    score: float | None
    max_score: float | None
    cause: str | None
    reason: str | None
    detail: Json


@dataclass(frozen=True, slots=True)
class GradingRow(Row):
    id: str
    project_id: str
    run_id: str
    deliverable_digest: str
    method: str
    method_version: str
    settings: Json
    settings_digest: str
    plan: str
    primary: bool
    round: int
    vote: int
    state: VerdictState
    score: float | None
    max_score: float | None
    cause: str | None
    detail: Json
    tries: int
    queue: str
    priority: int
    not_before: datetime | None
    put_offs: int
    regrade_id: str | None
    created_at: datetime
    started_at: datetime | None
    graded_at: datetime | None
    criteria: list[CriterionRow] = field(default_factory=list[CriterionRow])
    """The first ones (store.criteria.INLINE); ``criteria_total`` says how many there are."""
    criteria_total: int = 0
    CONVERT: ClassVar[Converters] = {"state": VerdictState}
    APART: ClassVar[frozenset[str]] = frozenset({"criteria", "criteria_total"})


@dataclass(frozen=True, slots=True)
class IntegrityRow(Row):
    id: str
    project_id: str
    digest: str
    version: str
    state: ReportState
    queued: bool
    tries: int
    cause: str | None
    problems: int | None
    """Files with problems."""
    report: IntegrityReport | None
    created_at: datetime
    CONVERT: ClassVar[Converters] = {"state": ReportState, "report": IntegrityReport.model_validate}


@dataclass(frozen=True, slots=True)
class OperationRow(Row):
    """Work in the background; ``log`` holds {at, text}, ``problem`` {type, status, detail, fields}."""

    id: str
    project_id: str
    kind: str
    state: OperationState
    spec: Json
    done: int
    total: int | None
    unit: str
    log: list[Json]
    result: Json | None
    problem: Json | None
    tries: int
    revision: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    updated_at: datetime | None
    cancel_requested_at: datetime | None
    CONVERT: ClassVar[Converters] = {"state": OperationState}


@dataclass(frozen=True, slots=True)
class BenchmarkRow(Row):
    id: str
    project_id: str
    name: str
    version: str
    digest: str
    manifest: BenchmarkHead
    facets: Json
    """What ``service.domain.benchmarks.facet_summary`` says of its tasks."""
    derived: Json | None
    """Parent, rule and what the rule met; null: it was imported."""
    labels: dict[str, str]
    revision: int
    created_at: datetime
    updated_at: datetime | None
    CONVERT: ClassVar[Converters] = {"manifest": BenchmarkHead.model_validate}


@dataclass(frozen=True, slots=True)
class BenchmarkItemRow(Row):
    """An item with its task's name and digest; these and ``task_id`` are null where no task could be made."""

    benchmark_id: str
    position: int
    key: str
    task_id: str | None
    task_name: str | None
    task_digest: str | None
    status: ItemStatus
    problems: list[Json]
    checked: Json | None
    CONVERT: ClassVar[Converters] = {"status": ItemStatus}


@dataclass(frozen=True, slots=True)
class HostRow(Row):
    """A Docker host. ``facts["untrusted_runtimes"]``: those that may run an untrusted project's work (default none)."""

    id: str
    epoch: str
    slots: int
    runtimes: tuple[str, ...]
    """Offered runtimes, preferred first."""
    environments: tuple[str, ...]
    """Names and image ids of the environments that the host has."""
    state: str = "up"
    """up | draining | lost"""
    slots_limit: int | None = None
    """An operator's lower limit."""
    cordoned: bool = False
    """Takes no new run."""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    facts: Json = field(default_factory=dict[str, Any])
    created_at: datetime | None = None
    beat_at: datetime | None = None
    CONVERT: ClassVar[Converters] = {"runtimes": tuple, "environments": tuple}

    @property
    def untrusted_runtimes(self) -> tuple[str, ...]:
        allowed = self.facts.get("untrusted_runtimes") or ()
        return tuple(r for r in self.runtimes if r in allowed)


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be inserted; ``limits`` and ``environment`` are resolved already."""

    project_id: str
    task_id: str
    agent_id: str
    limits: Limits
    environment: str
    sample: int = 1
    max_attempts: int = 3
    priority: int = 0
    runtime: str | None = None
    """null = any that the host offers."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    derived_from: str | None = None
    plan: str = "task@1"
    driver: Driver = Driver.KIT
    model_id: str | None = None
    budget: RunBudget = field(default_factory=RunBudget)
    network: NetworkRules = field(default_factory=NetworkRules)
    provider_tools: ProviderTools = ProviderTools.DENY
    replay_of: str | None = None
    keep_on_failure_s: float = 0.0
    kit: str | None = None
    flags: tuple[str, ...] = ()
    evaluation_id: str | None = None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Every field that is set must hold; a field with several values holds if one of them does."""

    ids: tuple[str, ...] = ()
    agent_id: tuple[str, ...] = ()
    task_id: tuple[str, ...] = ()
    phase: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()
    ended_because: tuple[str, ...] = ()
    flag: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    scaffold: tuple[str, ...] = ()
    """``name@version``."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    facets: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the task; a facet that is a list holds if it contains the value."""
    benchmark_id: tuple[str, ...] = ()
    """The task is one of the benchmark's."""
    evaluation_id: tuple[str, ...] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is wanted. ``cursor`` is a ``Slice.next`` of the same list and sort."""

    cursor: Cursor | None = None
    limit: int = 50
    """1 to 500."""


@dataclass(frozen=True, slots=True)
class Slice(Generic[T]):
    """A part of a list; ``next`` is null at its end."""

    items: list[T]
    next: Cursor | None
