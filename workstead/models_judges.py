"""Probes of judges, as the API shows them."""

from datetime import datetime
from typing import Any

from workstead.models import Model


class ProbeEstimate(Model):
    """What a probe would be made of."""

    runs: list[str]
    gradings: int


class JudgeProbe(Model):
    """What a judge did with deliverables under conditions."""

    id: str
    operation_id: str
    model: str
    plan: str | None = None
    report: dict[str, Any]
    """As ``api_schema/judge_probe.schema.json``."""
    created_at: datetime
