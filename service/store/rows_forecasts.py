"""Rows of forecast sets and forecasts."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import ClassVar

from service.domain.forecasts import ForecastSetSpec, ForecastState
from service.domain.surveys import SurveyState
from service.store.rows import Converters, Json, Row


@dataclass(frozen=True, slots=True)
class ForecastSetRow(Row):
    id: str
    project_id: str
    name: str
    state: SurveyState
    spec: ForecastSetSpec
    benchmark_id: str | None
    agent_id: str | None
    """Described agent; null: none of this installation."""
    template: str
    template_sha256: str
    total: int
    """Forecasts to be asked for."""
    ok: int
    excluded: int
    failed: int
    imported: int
    """Of the ok ones."""
    estimate: Json
    operation_id: str | None
    stopped_because: str | None
    labels: dict[str, str]
    author: str
    revision: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    CONVERT: ClassVar[Converters] = {"state": SurveyState, "spec": ForecastSetSpec.model_validate}

    @property
    def asked(self) -> int:
        """Of ``total``, those that need not be asked for any more."""
        return self.ok + self.excluded + self.failed - self.imported


@dataclass(frozen=True, slots=True)
class ForecastRow(Row):
    id: str
    project_id: str
    set_id: str
    task_id: str
    forecaster: str
    prompt: str
    variant: str | None
    with_reason: bool | None
    system: str | None
    model: str | None
    reported_model: str | None
    source: str
    state: ForecastState
    p_hat: float | None
    context_dependence: int | None
    verifiability: int | None
    autonomy_horizon: int | None
    tool_credential_surface: int | None
    deliverable_modality: int | None
    reason: str | None
    asks: int
    cause: str | None
    template_sha256: str | None
    rendered_sha256: str | None
    usage: Json | None
    cost_usd: Decimal | None
    declared_at: datetime | None
    created_at: datetime
    """When it was recorded here."""
    CONVERT: ClassVar[Converters] = {"state": ForecastState}
