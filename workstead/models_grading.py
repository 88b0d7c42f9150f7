"""What grading plans, regrades, votes and reviews answer."""

from datetime import datetime
from typing import Any

from pydantic import Field

from workstead.models import Model

WAITING = frozenset({"sampling", "running"})
"""States of a regrade that end by themselves."""


class GradingPlan(Model):
    id: str | None = None
    name: str
    version: int
    plan: str
    """``name@version``"""
    digest: str = ""
    spec: dict[str, Any] = Field(default_factory=dict[str, Any])
    author: str | None = None
    created_at: datetime | None = None


class RegradeProgress(Model):
    runs: int = 0
    sampled: int = 0
    steps: dict[str, int] = Field(default_factory=dict[str, int])
    gradings: dict[str, int] = Field(default_factory=dict[str, int])


class Regrade(Model):
    id: str
    plan: str = ""
    state: str = "draft"
    """draft | sampling | sampled | running | done | cancelled"""
    round: int = 1
    spec: dict[str, Any] = Field(default_factory=dict[str, Any])
    estimate: dict[str, Any] = Field(default_factory=dict[str, Any])
    comparison: dict[str, Any] | None = None
    progress: RegradeProgress | None = None
    """Null in lists."""
    author: str = ""
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


class Vote(Model):
    """One opinion of one judge."""

    judge: str
    item: str = ""
    n: int = 1
    state: str = ""
    content: dict[str, Any] | None = None
    cause: str | None = None
    asks: int = 1
    model: str | None = None
    template: str = ""
    usage: dict[str, Any] | None = None
    took_s: float | None = None


class Review(Model):
    """A contest or an override of a verdict."""

    id: str
    grading_id: str = ""
    run_id: str = ""
    kind: str = ""
    author: str = ""
    reason: str = ""
    score: float | None = None
    max_score: float | None = None
    created_at: datetime | None = None
    withdrawn_at: datetime | None = None
