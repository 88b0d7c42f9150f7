"""The run resource (NEEDS D2) and how it is made from a row."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from service.api.rendering import Digest, Timestamp, View, now, sha256_name
from service.domain.models import CostBasis
from service.domain.run_states import Phase
from service.domain.traces import trace_id
from service.store.rows import RunRow

TICKING = frozenset({Phase.PROVISIONING, Phase.RUNNING, Phase.PAUSED, Phase.AWAITING_CONFIRMATION})


class TaskOfRun(View):
    id: str
    name: str
    digest: Digest


class AgentOfRun(View):
    id: str
    label: str


class Progress(View):
    last_seq: int
    last_event_at: Timestamp | None
    turns: int
    tool_calls: int
    silent_s: float | None
    """Seconds since the last event at the time of the answer, while the agent works. Not part of ``revision``."""
    doing: str | None


class Usage(View):
    """Null where unknown: no model gateway has measured this run."""

    requests: int | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: str | None = None
    """Models and services together; null while what the models took is not known."""
    models_cost_usd: str | None = None
    services_cost_usd: str | None = None
    """Of calls to gateway services that have a price; null: none was made."""
    service_calls: int | None = None
    cost_basis: str = "unknown"
    """measured | declared | unknown"""
    price_date: str | None = None
    cost_usd_all_attempts: str | None = None


class Resources(View):
    memory_peak_bytes: int | None
    disk_used_bytes: int | None


class DeliverableOfRun(View):
    digest: Digest | None
    files: int
    bytes: int
    problems: int


class VerdictOfRun(View):
    state: str
    """pending | grading | graded | abstained | failed"""
    plan: str
    score: float | None
    max_score: float | None
    fraction: float | None
    graded_at: Timestamp | None


class Run(View):
    """One agent on one task, sample *k*. Enumerations may grow; unknown is null."""

    id: str
    revision: int
    """Rises with every change; the strong ETag."""
    phase: str
    """queued | held | provisioning | running | paused | awaiting_confirmation | collecting | grading | done"""
    hold: dict[str, Any] | None
    """Why it is not at work: ``reason``, ``detail`` (in words), ``since``. Of a queued run also ``position`` (1 is next in the
    order of all projects; null far down) and ``project_position``, worked out where one run is read; null in lists."""
    outcome: str | None
    """graded | abstained | ungraded | cancelled | invalidated; null until the phase is done"""
    ended_because: str | None
    evaluation_id: str | None
    task: TaskOfRun
    agent: AgentOfRun
    sample: int
    attempt: int
    derived_from: str | None
    """Run of which this is a rerun."""
    replay_of: str | None
    """Run whose recording answers in place of the models."""
    created_at: Timestamp
    started_at: Timestamp | None
    ended_at: Timestamp | None
    graded_at: Timestamp | None
    updated_at: Timestamp
    deadline_at: Timestamp | None
    queue_s: float | None
    provision_s: float | None
    wall_s: float | None
    """Seconds of the agent phase; while it lasts, up to the time of the answer."""
    working_s: float | None
    provider_wait_s: float | None
    waited_for_host_s: float
    progress: Progress
    usage: Usage
    resources: Resources
    deliverable: DeliverableOfRun
    verdict: VerdictOfRun
    flags: list[str]
    labels: dict[str, str]
    trace_id: str
    """Of the run's trace, where finished runs are sent to a collector of OpenTelemetry's."""


def run_view(row: RunRow, queued: dict[str, Any] | None = None) -> Run:
    """Return the resource. ``queued``: the hold of a queued run, where it was worked out."""
    ticking = row.phase in TICKING
    return Run(
        id=row.id,
        revision=row.revision,
        phase=row.phase,
        hold=row.hold or queued,
        outcome=row.outcome,
        ended_because=row.ended_because,
        evaluation_id=row.evaluation_id,
        task=TaskOfRun(id=row.task_id, name=row.task_name, digest=sha256_name(row.task_digest)),
        agent=AgentOfRun(id=row.agent_id, label=row.agent_label),
        sample=row.sample,
        attempt=row.attempt,
        derived_from=row.derived_from,
        replay_of=row.replay_of,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        graded_at=row.graded_at,
        updated_at=row.updated_at,
        deadline_at=row.deadline_at,
        queue_s=row.queue_s,
        provision_s=row.provision_s,
        wall_s=_age(row.started_at) if row.wall_s is None and ticking else row.wall_s,
        working_s=_working(row),
        provider_wait_s=row.provider_wait_s if row.model_id else None,
        waited_for_host_s=row.waited_for_host_s,
        progress=_progress(row, ticking),
        usage=_usage(row),
        resources=Resources(memory_peak_bytes=row.memory_peak_bytes, disk_used_bytes=row.disk_used_bytes),
        deliverable=_deliverable(row),
        verdict=_verdict(row),
        flags=list(row.flags),
        labels=dict(row.labels),
        trace_id=trace_id(row.id),
    )


def _age(since: datetime | None) -> float | None:
    return None if since is None else round(max((now() - since).total_seconds(), 0.0), 3)


def _progress(row: RunRow, ticking: bool) -> Progress:
    return Progress(
        last_seq=row.last_seq,
        last_event_at=row.last_event_at,
        turns=row.turns,
        tool_calls=row.tool_calls,
        silent_s=_age(row.last_event_at) if ticking else None,
        doing=row.doing,
    )


def _usage(row: RunRow) -> Usage:
    if row.model_id is None and not row.requests:
        return _services_only(row) if row.service_calls or row.cost_usd_all_attempts is not None else Usage()
    both = None if row.cost_usd is None else row.cost_usd + (row.service_cost_usd or Decimal(0))
    return Usage(
        requests=row.requests,
        input_tokens=row.input_tokens,
        cached_input_tokens=row.cached_input_tokens,
        cache_write_tokens=row.cache_write_tokens,
        output_tokens=row.output_tokens,
        reasoning_tokens=row.reasoning_tokens,
        cost_usd=_money(both),
        models_cost_usd=_money(row.cost_usd),
        services_cost_usd=_money(row.service_cost_usd),
        service_calls=row.service_calls,
        cost_basis=row.cost_basis or CostBasis.UNKNOWN,
        price_date=None if row.price_date is None else row.price_date.isoformat(),
        cost_usd_all_attempts=_money(row.cost_usd_all_attempts),
    )


def _services_only(row: RunRow) -> Usage:
    return Usage(
        cost_usd=_money(row.service_cost_usd),
        services_cost_usd=_money(row.service_cost_usd),
        service_calls=row.service_calls,
        cost_basis=CostBasis.UNKNOWN if row.service_cost_usd is None else CostBasis.MEASURED,
        cost_usd_all_attempts=_money(row.cost_usd_all_attempts),
    )


def _money(value: Decimal | None) -> str | None:
    return None if value is None else f"{value.normalize():f}"


def _working(row: RunRow) -> float | None:
    """Return the wall time without waits for providers and host."""
    if row.wall_s is None:
        return None
    return round(max(0.0, row.wall_s - row.provider_wait_s - row.waited_for_host_s), 3)


def _deliverable(row: RunRow) -> DeliverableOfRun:
    return DeliverableOfRun(
        digest=sha256_name(row.deliverable_digest) if row.deliverable_digest else None,
        files=row.deliverable_files,
        bytes=row.deliverable_bytes,
        problems=row.deliverable_problems,
    )


def _verdict(row: RunRow) -> VerdictOfRun:
    fraction = None
    if row.score is not None and row.max_score:
        fraction = row.score / row.max_score
    return VerdictOfRun(
        state=row.verdict_state,
        plan=row.plan,
        score=row.score,
        max_score=row.max_score,
        fraction=fraction,
        graded_at=row.graded_at,
    )
