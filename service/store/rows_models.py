"""Rows of what runs think with: models, credentials, gateway services, breakers."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from service.domain.breakers import BreakerState
from service.domain.credentials import Purpose
from service.domain.images import ImageContent, ImageState
from service.domain.models import ModelSpec
from service.domain.services import ServiceSpec
from service.store.rows import Converters, Json, Row


@dataclass(frozen=True, slots=True)
class ModelRow(Row):
    """An entry of a project's catalogue; ``private``: an operator's, so it may be at a private address."""

    id: str
    project_id: str
    name: str
    spec: ModelSpec
    revision: int
    credential_id: str | None
    private: bool
    checked_at: datetime | None
    check_result: Json | None
    created_at: datetime
    CONVERT: ClassVar[Converters] = {"spec": ModelSpec.model_validate}


@dataclass(frozen=True, slots=True)
class ServiceRow(Row):
    id: str
    project_id: str
    name: str
    spec: ServiceSpec
    revision: int
    credential_id: str | None
    private: bool
    created_at: datetime
    CONVERT: ClassVar[Converters] = {"spec": ServiceSpec.model_validate}


@dataclass(frozen=True, slots=True)
class CredentialRow(Row):
    """A secret that only the holder of the private key ``key_id`` can open; the context is the row's id."""

    id: str
    project_id: str
    purpose: Purpose
    key_id: str
    sealed: bytes
    hint: str
    created_at: datetime
    replaced_at: datetime | None
    CONVERT: ClassVar[Converters] = {"purpose": Purpose, "sealed": bytes}


@dataclass(frozen=True, slots=True)
class SealingKeyRow(Row):
    id: str
    public_key: bytes
    created_at: datetime
    CONVERT: ClassVar[Converters] = {"public_key": bytes}


@dataclass(frozen=True, slots=True)
class BreakerRow(Row):
    """What every gateway and the queue know of a way to a model; there is no row where nothing ever happened."""

    provider: str
    model_id: str
    credential_id: str
    """Empty: the deployment's own key, or none."""
    project_id: str
    state: BreakerState
    manual: bool
    """An operator's word: no probe changes it."""
    reason: str | None
    failures: int
    """Probes that failed in a row, the opening one included."""
    concurrency: int | None
    opened_at: datetime | None
    next_probe_at: datetime | None
    updated_at: datetime
    CONVERT: ClassVar[Converters] = {"state": BreakerState}


@dataclass(frozen=True, slots=True)
class ConformanceRow(Row):
    """The newest result of one case of a scaffold."""

    case_name: str
    result: str
    """pass | fail | skipped"""
    detail: Json
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ImageRow(Row):
    """An image that a project brought; what it is made of never changes."""

    id: str
    project_id: str
    name: str
    reference: str | None
    archive: str | None
    state: ImageState
    content: ImageContent | None
    report: Json
    credential_id: str | None
    operation_id: str | None
    private: bool
    revision: int
    created_at: datetime
    CONVERT: ClassVar[Converters] = {"state": ImageState, "content": ImageContent.model_validate}


@dataclass(frozen=True, slots=True)
class ClientFactsRow(Row):
    """Facts of a task's simulated client that a model made; the blobs belong to the task."""

    task_id: str
    project_id: str
    sha256: str
    size_bytes: int
    model: str
    reported_model: str | None
    template: str
    template_sha256: str
    prompt_sha256: str
    seed: int
    usage: Json | None
    author: str
    operation_id: str
    created_at: datetime
