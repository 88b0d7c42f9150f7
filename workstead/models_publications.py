"""Publications: exports at an address that stays."""

from datetime import datetime
from typing import Any

from pydantic import Field

from workstead.models import Model


class WithdrawnRow(Model):
    agent: str
    reason: str
    at: datetime


class Publication(Model):
    """An immutable snapshot of results; what is withdrawn is said in its place."""

    id: str
    name: str
    number: int
    export: str
    """Operation that made what was published."""
    profile: str
    public: bool
    url: str | None = None
    """Path for anybody, below the service's address; None unless it is public."""
    digest: str
    """Of the report as it was published."""
    archive: str
    summary: dict[str, Any] = Field(default_factory=dict[str, Any])
    withdrawn: list[WithdrawnRow] = Field(default_factory=list[WithdrawnRow])
    previous: str | None = None
    newest: str | None = None
    created_at: datetime
