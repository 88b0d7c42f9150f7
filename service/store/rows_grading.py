"""Rows of grading: plans, evidence documents, reviews of verdicts, regrades, probes of judges."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from service.domain.evidence import EvidenceState
from service.domain.grading_plans import PlanSpec
from service.domain.probes import ProbeReport
from service.store.rows import Converters, Json, Row


@dataclass(frozen=True, slots=True)
class PlanRow(Row):
    id: str
    project_id: str
    name: str
    version: int
    digest: str
    spec: PlanSpec
    author: str
    created_at: datetime
    CONVERT: ClassVar[Converters] = {"spec": PlanSpec.model_validate}


@dataclass(frozen=True, slots=True)
class VoteRow(Row):
    grading_id: str
    judge: str
    item: str
    n: int
    project_id: str
    state: str
    content: Json
    cause: str | None
    asks: int
    model: str | None
    template: str
    template_sha256: str | None
    rendered_sha256: str | None
    usage: Json | None
    took_s: float | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class DeadLetterRow(Row):
    """Failed gradings of one cause and method."""

    cause: str | None
    method: str
    gradings: int
    runs: int
    oldest_at: datetime | None
    newest_at: datetime | None


@dataclass(frozen=True, slots=True)
class EvidenceRow(Row):
    id: str
    project_id: str
    digest: str
    version: str
    state: EvidenceState
    queued: bool
    tries: int
    cause: str | None
    sha256: str | None
    """Of the document's blob; set exactly when the state is ready."""
    size_bytes: int | None
    files: int | None
    failed_files: int | None
    omitted_chars: int | None
    took_s: float | None
    created_at: datetime
    made_at: datetime | None
    CONVERT: ClassVar[Converters] = {"state": EvidenceState}


@dataclass(frozen=True, slots=True)
class ReviewRow(Row):
    id: str
    project_id: str
    run_id: str
    grading_id: str
    kind: str
    author: str
    reason: str
    score: float | None
    max_score: float | None
    created_at: datetime
    withdrawn_at: datetime | None


@dataclass(frozen=True, slots=True)
class RegradeRow(Row):
    id: str
    project_id: str
    plan: str
    spec: Json
    state: str
    estimate: Json
    comparison: Json | None
    round: int
    revision: int
    author: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class ProbeRow(Row):
    id: str
    project_id: str
    operation_id: str
    model: str
    plan: str | None
    report: ProbeReport
    created_at: datetime
    CONVERT: ClassVar[Converters] = {"report": ProbeReport.model_validate}
