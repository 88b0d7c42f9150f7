"""Annotation sets, votes and values, and derived benchmarks, as the API shows them."""

from datetime import datetime
from typing import Any

from pydantic import Field

from workstead.models import Benchmark, Model

Value = str | float | list[str] | None


class AnnotationSet(Model):
    """Labels of items by models or people. ``spec``, ``estimate``, ``targets``, ``valued``, ``agreement``, ``usage`` and
    ``cost_usd`` are null in lists."""

    id: str
    revision: int
    name: str
    version: int
    overlay: str
    """``name@version``: the facet, once it is accepted."""
    about: str
    """instruction | task | deliverable | text"""
    state: str
    """draft | running | done | stopped | cancelled"""
    benchmark_id: str | None = None
    template: str
    template_digest: str
    total: int
    answered: int
    refused: int
    unreadable: int
    excluded: int
    failed: int
    brought: int
    operation_id: str | None = None
    stopped_because: str | None = None
    digest: str | None = None
    accepted_at: datetime | None = None
    accepted_by: str | None = None
    labels: dict[str, str]
    author: str
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    spec: dict[str, Any] | None = None
    estimate: dict[str, Any] | None = None
    targets: int | None = None
    valued: int | None = None
    agreement: dict[str, Any] | None = None
    """``{items, votes, kappa, unanimous, tied, ties}``"""
    usage: dict[str, int] | None = None
    cost_usd: str | None = None


class Annotation(Model):
    """One vote."""

    id: str
    set_id: str
    target: str
    annotator: str
    n: int
    state: str
    """answered | refused | unreadable | excluded | failed"""
    value: Value = None
    reason: str | None = None
    model: str | None = None
    reported_model: str | None = None
    author: str | None = None
    asks: int
    cause: str | None = None
    rendered_digest: str | None = None
    usage: dict[str, Any] | None = None
    cost_usd: str | None = None
    created_at: datetime


class AnnotationValue(Model):
    """What a set says of one target."""

    target: str
    task_id: str | None = None
    item_key: str | None = None
    value: Value = None
    """None: nothing was answered, or a tie."""
    votes: int
    agreeing: int
    tied: list[str] = Field(default_factory=list[str])
    by_person: bool = False


class BroughtAnnotations(Model):
    new: int
    known: int


class Derivation(Model):
    """What a rule made of a benchmark."""

    benchmark: Benchmark | None = None
    """None: only counted."""
    digest: str
    fitting: int
    taken: int
    strata: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """``{name, fitting, taken}`` each."""
    empty: list[str] = Field(default_factory=list[str])
    useless: list[str] = Field(default_factory=list[str])
