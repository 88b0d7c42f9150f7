"""Benchmarks and their items as clients see them, and what they send of a check."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.api.rendering import Digest, Timestamp, View, sha256_name
from service.domain.benchmarks import BenchmarkHead, ItemStatus, Text
from service.store.rows import BenchmarkItemRow, BenchmarkRow

MAX_CHECKS = 5_000


class BenchmarkCounts(View):
    items: int
    ok: int
    disputed: int
    quarantined: int
    checked: dict[str, int]
    """State that ``benchmarks check`` found (ok | suspect | broken) → items; those that nobody checked are in none."""


class Benchmark(View):
    """A named, versioned set of tasks. Its content never changes; its labels and what a check found may."""

    id: str
    name: str
    version: str
    digest: Digest
    revision: int
    created_at: Timestamp
    updated_at: Timestamp | None
    labels: dict[str, str]
    counts: BenchmarkCounts
    facets: dict[str, Any]
    """Facet → ``{tasks, distinct, values}``: how many tasks have it, of how many values, and the most frequent ones."""
    head: BenchmarkHead
    """As it was imported: source, notice, deny list, policies, groupings."""
    derived: dict[str, Any] | None
    """Parent, rule, annotations that the rule goes by, and what it met; null: imported."""


class ItemTask(View):
    id: str
    name: str
    digest: Digest


class Item(View):
    key: str
    """Its id in the source."""
    position: int
    task: ItemTask | None
    """Null where no task could be made."""
    status: str
    """ok | disputed | quarantined"""
    problems: list[dict[str, Any]]
    """``{type, where, detail}`` each."""
    checked: dict[str, Any] | None
    """What ``POST …/checks`` brought; null before."""


class ItemCheck(BaseModel):
    """What a check found of one item (NEEDS A6)."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    state: Literal["ok", "suspect", "broken"]
    oracle: Annotated[str, Field(max_length=200)] | None = None
    """How the reference solution did: passed | failed | not_applicable | …"""
    nop: Annotated[str, Field(max_length=200)] | None = None
    """How an agent that does nothing did."""
    reasons: list[Text] = Field(default_factory=list[str], max_length=50)
    runs: dict[str, Annotated[str, Field(max_length=64)]] = Field(default_factory=dict[str, str], max_length=8)
    """``{oracle: run id, nop: run id}``"""


class ChecksRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    items: dict[Annotated[str, Field(max_length=256)], ItemCheck] = Field(min_length=1, max_length=MAX_CHECKS)
    """By key; items that are not named keep what they have."""


def benchmark_view(row: BenchmarkRow, counts: dict[str, int]) -> Benchmark:
    statuses = {status.value: counts.get(status, 0) for status in ItemStatus}
    checked = {name.removeprefix("check."): n for name, n in counts.items() if name.startswith("check.")}
    return Benchmark(
        id=row.id,
        name=row.name,
        version=row.version,
        digest=sha256_name(row.digest),
        revision=row.revision,
        created_at=row.created_at,
        updated_at=row.updated_at,
        labels=row.labels,
        counts=BenchmarkCounts(items=sum(statuses.values()), checked=checked, **statuses),
        facets=row.facets,
        head=row.manifest,
        derived=row.derived,
    )


def item_view(row: BenchmarkItemRow) -> Item:
    task = None
    if row.task_id is not None:
        task = ItemTask(id=row.task_id, name=row.task_name or "", digest=sha256_name(row.task_digest or ""))
    return Item(
        key=row.key, position=row.position, task=task, status=row.status, problems=row.problems, checked=row.checked
    )
