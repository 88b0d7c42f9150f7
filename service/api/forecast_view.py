"""Forecast sets and forecasts as the API shows them."""

from datetime import datetime
from typing import Any

from pydantic import Field

from service.api.rendering import Digest, Timestamp, View, sha256_name
from service.domain.forecasts import ForecastState
from service.domain.models import TokenUsage
from service.domain.surveys import SurveyState
from service.lifecycle.estimates import money
from service.store.rows_forecasts import ForecastRow, ForecastSetRow
from service.store.rows_requests import SubjectCost


class ForecastSetHead(View):
    id: str
    revision: int
    name: str
    state: SurveyState
    benchmark_id: str | None
    agent_id: str | None
    """Whom the forecasts are about; null: no agent of this installation."""
    template: str
    template_digest: Digest
    total: int
    """Forecasts to be asked for."""
    ok: int
    """Imported ones included."""
    excluded: int
    """No answer fitted: in none of the forecaster's figures."""
    failed: int
    imported: int
    operation_id: str | None
    """Of the latest start."""
    stopped_because: str | None
    """forecaster_away, or what was unavailable."""
    labels: dict[str, str]
    author: str
    created_at: Timestamp
    started_at: Timestamp | None
    ended_at: Timestamp | None


class ForecastSet(ForecastSetHead):
    spec: dict[str, Any]
    """What was asked for."""
    estimate: dict[str, Any]
    """Made before anybody was asked: forecasts, input_tokens, output_tokens, cost_usd (null where a price is not known), parts."""
    tasks: int
    usage: TokenUsage
    """Of all questions so far."""
    cost_usd: str | None
    """Null: not known, or nothing was asked."""


class ForecastView(View):
    id: str
    set_id: str
    task_id: str
    forecaster: str
    """``model#digest of its settings``; of imported ones as their maker calls it."""
    prompt: str
    """``variant``, ``+reason`` where one was asked for, ``@tools`` with that system message."""
    variant: str | None
    with_reason: bool | None
    system: str | None
    model: str | None
    reported_model: str | None
    """As the provider calls it."""
    source: str
    """asked | imported"""
    state: ForecastState
    p_hat: float | None
    """Probability that the work is accepted and paid for; null: none."""
    context_dependence: int | None
    verifiability: int | None
    autonomy_horizon: int | None
    tool_credential_surface: int | None
    deliverable_modality: int | None
    reason: str | None
    asks: int
    cause: str | None
    """Why it is excluded or failed."""
    template_digest: Digest | None
    rendered_digest: Digest | None
    """Of JSON {system, text}, a blob."""
    usage: dict[str, Any] | None
    cost_usd: str | None
    declared_at: Timestamp | None
    """When an imported one was made, as its maker says."""
    made_at: Timestamp
    """When it was recorded here."""
    first_attempt_at: Timestamp | None
    """When the set's agent first began on the task; null: it never has, or the set is about none."""
    made_before_attempt: bool | None
    """Worked out from the two times above; null while there is no attempt."""


class Brought(View):
    """What became of forecasts that were brought."""

    new: int
    known: int = Field(default=0)
    """Were there already, and stay as they are."""


def head_view(row: ForecastSetRow) -> ForecastSetHead:
    return ForecastSetHead(**_head(row))


def set_view(row: ForecastSetRow, tasks: int, cost: SubjectCost | None) -> ForecastSet:
    known = cost is not None and cost.usd is not None and not cost.unknown
    return ForecastSet(
        **_head(row),
        spec=row.spec.model_dump(mode="json"),
        estimate=row.estimate,
        tasks=tasks,
        usage=TokenUsage() if cost is None else cost.usage,
        cost_usd=money(cost.usd) if known and cost is not None and cost.usd is not None else None,
    )


def forecast_view(row: ForecastRow, first_attempt: datetime | None) -> ForecastView:
    names = set(ForecastView.model_fields) & set(ForecastRow.__slots__) - {"cost_usd"}
    return ForecastView(
        **{name: getattr(row, name) for name in names},
        template_digest=None if row.template_sha256 is None else sha256_name(row.template_sha256),
        rendered_digest=None if row.rendered_sha256 is None else sha256_name(row.rendered_sha256),
        cost_usd=None if row.cost_usd is None else money(row.cost_usd),
        made_at=row.created_at,
        first_attempt_at=first_attempt,
        made_before_attempt=None if first_attempt is None else row.created_at < first_attempt,
    )


def _head(row: ForecastSetRow) -> dict[str, Any]:
    names = set(ForecastSetHead.model_fields) - {"template_digest"}
    return {name: getattr(row, name) for name in names} | {"template_digest": sha256_name(row.template_sha256)}
