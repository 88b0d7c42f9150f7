"""What a deployment may ask: models, gateway services, and the breakers before them."""

from datetime import datetime
from typing import Any

from pydantic import Field

from workstead.models import Model


class CatalogueModel(Model):
    """An entry of the model catalogue. ``spec``: provider, upstream_id, dialect, base_url, efforts, prices …"""

    id: str
    name: str
    revision: int = 0
    spec: dict[str, Any] = Field(default_factory=dict[str, Any])
    has_credential: bool = False
    private: bool = False
    checked_at: datetime | None = None
    check: dict[str, Any] | None = None
    """What the last check of this entry found: ``ok``, ``checks``."""
    created_at: datetime | None = None


class GatewayService(Model):
    """A further upstream, reachable in sandboxes as ``/services/<name>/``."""

    id: str
    name: str
    revision: int = 0
    spec: dict[str, Any] = Field(default_factory=dict[str, Any])
    has_credential: bool = False
    private: bool = False
    created_at: datetime | None = None


class BroughtImage(Model):
    """An environment or a kit that the project brought."""

    id: str
    name: str
    revision: int = 0
    reference: str | None = None
    archive: str | None = None
    state: str = "pending"
    """pending | ready | refused | …"""
    report: dict[str, Any] = Field(default_factory=dict[str, Any])
    """What was found; ``overridden`` in words, ``refused`` why it was not taken."""
    has_credential: bool = False
    operation_id: str | None = None
    created_at: datetime | None = None


class CredentialState(Model):
    """That there is a secret; never the secret."""

    purpose: str
    state: str
    """ready | unreadable | …"""
    hint: str = ""
    created_at: datetime | None = None
    replaced_at: datetime | None = None


class Breaker(Model):
    """The way to a model; while it is not ``closed``, runs that need it are held."""

    model_id: str
    model: str = ""
    provider: str = ""
    state: str = "closed"
    """closed | open | half_open | …"""
    manual: bool = False
    reason: str | None = None
    failures: int = 0
    concurrency: int | None = None
    opened_at: datetime | None = None
    next_probe_at: datetime | None = None
