"""The evaluation resource (NEEDS D3) and how it is made from its row and its agents' rows: no run is counted for it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from service.api.rendering import Timestamp, View, now
from service.domain.evaluations import EvaluationState
from service.domain.pace import per_hour, remaining
from service.store.evaluations.watching import JUDGES_BUDGET
from service.store.rows_evaluations import Counts, EvaluationRow, ListedEvaluation, MemberRow


class EvaluationAgent(View):
    id: str
    label: str
    samples: int
    total: int
    counts: dict[str, dict[str, int]]
    """``phase``, ``outcome``, ``ended_because`` → value → runs."""
    settings: dict[str, Any]
    """What was said of its runs alone."""
    hold: dict[str, Any] | None


class Eta(View):
    p50_at: Timestamp
    p90_at: Timestamp
    basis: str
    """throughput (runs done since the start) | estimate (of the draft)"""


class Spend(View):
    """As of ``at``; null: nothing has been summed up yet, or judges have been asked since and it is summed anew."""

    agents_usd: str | None = None
    judges_usd: str | None = None
    at: str | None = None


class Evaluation(View):
    """Agents by tasks by samples as one thing. Enumerations may grow; unknown is null."""

    id: str
    revision: int
    """Rises with every change, also of a run's phase; the strong ETag."""
    name: str
    state: str
    """draft | checking | running | done | stopped"""
    benchmark_id: str | None
    plan: str
    seed: int
    total: int
    """Runs that exist; the counts of each phase add up to it."""
    counts: dict[str, dict[str, int]]
    """``phase``, ``outcome``, ``ended_because`` → value → runs."""
    agents: list[EvaluationAgent]
    """Empty in lists."""
    spend: Spend
    budget: dict[str, Any]
    stop_rules: dict[str, Any]
    concurrency: dict[str, Any]
    priority: int
    holds: list[dict[str, Any]]
    """Of the whole and of agents (``agent_id``, ``agent``): ``reason``, ``detail``, ``since``. In lists of the whole only.
    ``judges_budget``: gradings wait, runs go on; not part of ``revision``."""
    eta: Eta | None
    """Null where nothing is left, nothing goes on, or too little is known. Not part of ``revision``."""
    throughput_per_h: float | None
    """Runs graded, abstained or ungraded per hour since the start. Not part of ``revision``."""
    labels: dict[str, str]
    notes: str
    author: str
    created_at: Timestamp
    started_at: Timestamp | None
    ended_at: Timestamp | None
    updated_at: Timestamp | None
    spec: dict[str, Any] | None
    """As it was asked for; this and what follows is null in lists."""
    resolved: dict[str, Any] | None
    """What it means, by digests: benchmark, plan, tasks, agents with the settings of their runs, images, seed, service
    version. Enough to make it again."""
    warnings: list[dict[str, Any]] | None
    """What somebody should know before it starts: ``type``, ``detail``, and what it is about."""
    estimate: dict[str, Any] | None
    """``agents_usd``, ``judges_usd``, ``run_hours``, ``finish_s``: p10, p50, p90 or null; ``agents`` with the ``basis`` of each:
    history (its runs of this benchmark), agent (of other tasks), none."""
    preflight: dict[str, Any] | None
    changed: dict[str, int] | None
    """What the request did: ``made``, ``cancelled``, ``stopping`` → runs. Null where it asked for nothing of the kind."""


def listed_view(row: ListedEvaluation) -> Evaluation:
    """Return the resource as lists have it."""
    return _view(row, [], {})


def evaluation_view(
    row: EvaluationRow, members: Sequence[MemberRow], changed: Mapping[str, int] | None = None
) -> Evaluation:
    whole = {
        "spec": row.spec.model_dump(mode="json"),
        "resolved": {name: value for name, value in row.resolved.items() if name != "warnings"},
        "warnings": row.resolved.get("warnings", []),
        "estimate": row.estimate or None,
        "preflight": row.preflight,
        "changed": None if changed is None else dict(changed),
    }
    return _view(row, members, whole)


_WHOLE = ("spec", "resolved", "warnings", "estimate", "preflight", "changed")


def _view(row: ListedEvaluation, members: Sequence[MemberRow], whole: Mapping[str, Any]) -> Evaluation:
    at = now()
    return Evaluation(
        id=row.id,
        revision=row.revision,
        name=row.name,
        state=row.state,
        benchmark_id=row.benchmark_id,
        plan=row.plan,
        seed=row.seed,
        total=row.total,
        counts=_present(row.counts),
        agents=[_member(one) for one in members],
        spend=Spend.model_validate({name: row.spend.get(name) for name in Spend.model_fields}),
        budget=row.budget.model_dump(mode="json"),
        stop_rules=row.stop_rules.model_dump(mode="json"),
        concurrency=row.concurrency.model_dump(mode="json"),
        priority=row.priority,
        holds=_holds(row, members),
        eta=_eta(row, whole.get("estimate"), at),
        throughput_per_h=_pace(row, at),
        labels=row.labels,
        notes=row.notes,
        author=row.author,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        updated_at=row.updated_at,
        **{name: whole.get(name) for name in _WHOLE},
    )


def _member(row: MemberRow) -> EvaluationAgent:
    return EvaluationAgent(
        id=row.agent_id,
        label=row.agent_label,
        samples=row.samples,
        total=row.total,
        counts=_present(row.counts),
        settings=row.settings.model_dump(mode="json", exclude_defaults=True),
        hold=row.hold,
    )


def _present(counts: Counts) -> dict[str, dict[str, int]]:
    """What no run has any more is left out, as what none ever had."""
    found = {section: counts.get(section, {}) for section in ("phase", "outcome", "ended_because")}
    return {section: {name: n for name, n in values.items() if n} for section, values in found.items()}


def _holds(row: ListedEvaluation, members: Sequence[MemberRow]) -> list[dict[str, Any]]:
    nobody = {"agent_id": None, "agent": None}
    whole = [] if row.hold is None else [{**row.hold, **nobody}]
    if row.spend.get("judges_held"):
        words = f"the judges have spent {row.spend.get('judges_usd')} of {row.budget.judges_usd} USD: none is asked"
        whole.append({"reason": JUDGES_BUDGET, "detail": words, "since": row.spend.get("at"), **nobody})
    return whole + [{**m.hold, "agent_id": m.agent_id, "agent": m.agent_label} for m in members if m.hold is not None]


def _elapsed(row: ListedEvaluation, at: datetime) -> float:
    return 0.0 if row.started_at is None else ((row.ended_at or at) - row.started_at).total_seconds()


def _worked(row: ListedEvaluation) -> int:
    outcomes = row.counts.get("outcome", {})
    return sum(outcomes.get(name, 0) for name in ("graded", "abstained", "ungraded"))


def _pace(row: ListedEvaluation, at: datetime) -> float | None:
    pace = per_hour(_worked(row), _elapsed(row, at))
    return None if pace is None else round(pace, 3)


def _eta(row: ListedEvaluation, estimate: Mapping[str, Any] | None, at: datetime) -> Eta | None:
    left = row.total - row.counts.get("phase", {}).get("done", 0)
    if row.state is not EvaluationState.RUNNING or row.hold is not None or left < 1:
        return None
    by_pace = remaining(_worked(row), left, _elapsed(row, at))
    if by_pace is not None:
        p50, p90 = (at + timedelta(seconds=s) for s in (by_pace.p50_s, by_pace.p90_s))
        return Eta(p50_at=p50, p90_at=p90, basis="throughput")
    finish = (estimate or {}).get("finish_s")
    if finish is None or row.started_at is None:
        return None
    p50, p90 = (row.started_at + timedelta(seconds=finish[name]) for name in ("p50", "p90"))
    return Eta(p50_at=p50, p90_at=p90, basis="estimate")
