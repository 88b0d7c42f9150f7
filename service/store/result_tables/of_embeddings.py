"""Table embeddings: vectors of the texts of the scope's tasks."""

from typing import Any

from sqlalchemy import Select, select

from service.store.result_tables.columns import json_text, untyped
from service.store.result_tables.scope import Scope, scoped_runs
from service.store.tables import runs
from service.store.tables_embeddings import embeddings


def embeddings_query(scope: Scope) -> Select[Any]:
    e = embeddings.c
    wanted = select(runs.c.task_id).where(runs.c.id.in_(scoped_runs(scope)))
    query = (
        select(
            e.task_id, e.model, e.asked_dimensions, e.reported_model, e.text_sha256,
            json_text(e.vector).label("vector"), e.operation_id, e.created_at.label("made_at"),
        )
        .where(e.project_id == scope.project_id, e.task_id.in_(wanted))
        .order_by(e.model, e.asked_dimensions, e.task_id)
    )  # fmt: skip
    return untyped(query)
