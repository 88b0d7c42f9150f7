"""Rows of a table, piece by piece from a cursor of the server: memory stays small however many there are."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from sqlalchemy import Select

from service.store.database import Tx
from service.store.result_tables import of_embeddings, of_forecasts, of_grading, of_models, of_runs
from service.store.result_tables.scope import Scope

PIECE = 2_000
"""Rows of one piece."""
Row = dict[str, Any]
QUERIES: Mapping[str, Callable[[Scope], Select[Any]]] = {
    "runs": of_runs.runs_query,
    "attempts": of_runs.attempts_query,
    "agents": of_runs.agents_query,
    "tasks": of_runs.tasks_query,
    "exclusions": of_runs.exclusions_query,
    "verdicts": of_grading.verdicts_query,
    "criteria": of_grading.criteria_query,
    "votes": of_grading.votes_query,
    "ratings": of_grading.ratings_query,
    "preferences": of_grading.preferences_query,
    "model_requests": of_models.model_requests_query,
    "tool_calls": of_models.tool_calls_query,
    "forecasts": of_forecasts.forecasts_query,
    "embeddings": of_embeddings.embeddings_query,
}
"""Table → its statement. Tables runs and exclusions also have columns ``fact_*``."""


async def pieces(tx: Tx, table: str, scope: Scope) -> AsyncGenerator[list[Row]]:
    """Yield the table's rows in its order. Within one snapshot all tables are of one moment; read on without long breaks:
    a transaction that is idle for a minute is ended."""
    result = await tx.stream(QUERIES[table](scope).execution_options(yield_per=PIECE))
    async for part in result.mappings().partitions():
        yield [dict(row) for row in part]
