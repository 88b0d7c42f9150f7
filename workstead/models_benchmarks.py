"""What a benchmark is made of, as the API shows it."""

from typing import Any

from pydantic import Field

from workstead.models import Model


class BenchmarkCard(Model):
    """What a benchmark is made of; figures are of its usable items."""

    id: str
    name: str
    version: str
    notice: str = ""
    counts: dict[str, Any] = Field(default_factory=dict[str, Any])
    facets: dict[str, Any] = Field(default_factory=dict[str, Any])
    overlays: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Accepted annotations, ``name@version`` → ``{id, digest, tasks, distinct, values}``."""
    formats: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """``{suffix, tasks, files, size_bytes}`` each."""
    price_usd: dict[str, Any] | None = None
    """``{n, missing, total, mean, min, p10, p25, p50, p75, p90, max}``."""
    price_basis: dict[str, int] = Field(default_factory=dict[str, int])
    human_hours: dict[str, Any] | None = None
    price_and_hours: dict[str, Any] = Field(default_factory=dict[str, Any])
    """``{n, r}``: Pearson's r of the logarithms."""
    policies: dict[str, Any] = Field(default_factory=dict[str, Any])
    groupings: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    source: dict[str, Any] = Field(default_factory=dict[str, Any])
    labels: dict[str, str] = Field(default_factory=dict[str, str])


class Embeddings(Model):
    """Vectors of one kind that a benchmark's tasks have."""

    model: str
    asked_dimensions: int
    """0: the model's own."""
    length: int
    tasks: int
