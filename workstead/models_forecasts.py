"""Forecast sets and forecasts, as the API shows them."""

from datetime import datetime
from typing import Any

from workstead.models import Model


class ForecastSet(Model):
    """Forecasts about one described agent. ``spec``, ``estimate``, ``tasks``, ``usage`` and ``cost_usd`` are null in lists."""

    id: str
    revision: int
    name: str
    state: str
    """draft | running | done | stopped | cancelled"""
    benchmark_id: str | None = None
    agent_id: str | None = None
    template: str
    template_digest: str
    total: int
    ok: int
    excluded: int
    failed: int
    imported: int
    operation_id: str | None = None
    stopped_because: str | None = None
    labels: dict[str, str]
    author: str
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    spec: dict[str, Any] | None = None
    estimate: dict[str, Any] | None = None
    tasks: int | None = None
    usage: dict[str, int] | None = None
    cost_usd: str | None = None


class Forecast(Model):
    """What a forecaster said of one task."""

    id: str
    set_id: str
    task_id: str
    forecaster: str
    prompt: str
    variant: str | None = None
    with_reason: bool | None = None
    system: str | None = None
    model: str | None = None
    reported_model: str | None = None
    source: str
    """asked | imported"""
    state: str
    """ok | excluded | failed"""
    p_hat: float | None = None
    context_dependence: int | None = None
    verifiability: int | None = None
    autonomy_horizon: int | None = None
    tool_credential_surface: int | None = None
    deliverable_modality: int | None = None
    reason: str | None = None
    asks: int
    cause: str | None = None
    template_digest: str | None = None
    rendered_digest: str | None = None
    usage: dict[str, Any] | None = None
    cost_usd: str | None = None
    declared_at: datetime | None = None
    made_at: datetime
    first_attempt_at: datetime | None = None
    made_before_attempt: bool | None = None
    """Worked out from runs; null while there is no attempt."""


class BroughtForecasts(Model):
    new: int
    known: int
