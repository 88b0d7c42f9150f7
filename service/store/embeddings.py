"""Embeddings of tasks' texts: each (task, model, asked dimensions) once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from service.store.database import Tx
from service.store.many_rows import arrays_of, insert_of_many
from service.store.tables_benchmarks import benchmark_items, benchmarks
from service.store.tables_embeddings import embeddings

_COLUMNS = (
    "project_id", "task_id", "model", "asked_dimensions", "reported_model", "text_sha256", "vector", "operation_id",
)  # fmt: skip
_ADD = insert_of_many(
    embeddings, _COLUMNS, tail="ON CONFLICT (project_id, task_id, model, asked_dimensions) DO NOTHING"
)


@dataclass(frozen=True, slots=True)
class Kind:
    """Vectors of one kind that a benchmark's tasks have."""

    model: str
    asked_dimensions: int
    length: int
    """Of each vector."""
    tasks: int


async def missing(tx: Tx, project_id: str, benchmark_id: str, model: str, asked: int) -> tuple[list[str], int]:
    """Return the benchmark's tasks without a vector of this kind, in their order, and how many tasks there are."""
    own = (embeddings.c.project_id == project_id) & (embeddings.c.task_id == benchmark_items.c.task_id)
    own &= (embeddings.c.model == model) & (embeddings.c.asked_dimensions == asked)
    query = (
        select(benchmark_items.c.task_id, embeddings.c.task_id.is_(None).label("missing"))
        .join(benchmarks, benchmarks.c.id == benchmark_items.c.benchmark_id)
        .outerjoin(embeddings, own)
        .where(benchmarks.c.project_id == project_id, benchmarks.c.id == benchmark_id)
        .where(benchmark_items.c.task_id.is_not(None))
        .order_by(benchmark_items.c.position)
    )
    rows = [(str(task), bool(absent)) for task, absent in (await tx.execute(query)).all()]
    every = dict(rows)
    return [task for task, absent in every.items() if absent], len(every)


async def put(tx: Tx, rows: Sequence[dict[str, Any]]) -> None:
    """Record vectors; of what is there already, the earlier one stays."""
    await tx.execute(_ADD, arrays_of(embeddings, _COLUMNS, rows))


async def kinds(tx: Tx, project_id: str, benchmark_id: str) -> list[Kind]:
    """Return what the benchmark's tasks have, by model."""
    e = embeddings.c
    tasks_of = select(benchmark_items.c.task_id).where(benchmark_items.c.benchmark_id == benchmark_id)
    length = func.max(func.jsonb_array_length(e.vector))
    query = (
        select(e.model, e.asked_dimensions, length, func.count())
        .where(e.project_id == project_id, e.task_id.in_(tasks_of))
        .group_by(e.model, e.asked_dimensions)
        .order_by(e.model, e.asked_dimensions)
    )
    return [Kind(*row) for row in (await tx.execute(query)).all()]
