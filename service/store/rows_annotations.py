"""Rows of annotation sets, of what was said in them, and of what that amounts to."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import ClassVar

from service.domain.annotations import AnnotationSetSpec, AnnotationState, Target
from service.domain.surveys import SurveyState
from service.domain.tasks import Facet
from service.store.rows import Converters, Json, Row


@dataclass(frozen=True, slots=True)
class AnnotationSetRow(Row):
    id: str
    project_id: str
    name: str
    version: int
    about: Target
    state: SurveyState
    spec: AnnotationSetSpec
    benchmark_id: str | None
    template: str
    template_sha256: str
    total: int
    """Votes to be asked for."""
    answered: int
    refused: int
    unreadable: int
    excluded: int
    failed: int
    brought: int
    """By people, of the answered ones."""
    estimate: Json
    operation_id: str | None
    stopped_because: str | None
    digest: str | None
    """Of the values that were accepted."""
    accepted_by: str | None
    labels: dict[str, str]
    author: str
    revision: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    accepted_at: datetime | None
    CONVERT: ClassVar[Converters] = {"about": Target, "state": SurveyState, "spec": AnnotationSetSpec.model_validate}

    @property
    def asked(self) -> int:
        """Of ``total``, those that need not be asked for any more."""
        return self.answered + self.refused + self.unreadable + self.excluded + self.failed - self.brought

    @property
    def overlay(self) -> str:
        """What its values are called as a facet."""
        return f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class AnnotationRow(Row):
    id: str
    project_id: str
    set_id: str
    target: str
    annotator: str
    n: int
    state: AnnotationState
    value: Facet | None
    reason: str | None
    model: str | None
    reported_model: str | None
    author: str | None
    asks: int
    cause: str | None
    rendered_sha256: str | None
    usage: Json | None
    cost_usd: Decimal | None
    created_at: datetime
    CONVERT: ClassVar[Converters] = {"state": AnnotationState}


@dataclass(frozen=True, slots=True)
class AnnotationValueRow(Row):
    set_id: str
    target: str
    task_id: str | None
    item_key: str | None
    value: Facet | None
    votes: int
    agreeing: int
    tied: list[str]
    by_person: bool
