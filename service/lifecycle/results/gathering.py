"""Tables of a scope as frames, all of one moment."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence

import polars as pl

from service.domain.benchmarks import Policies
from service.domain.errors import TooLarge
from service.lifecycle.results.counting_rows import counted_rows
from service.reporting.frames import Tables, frame, joined
from service.store.database import Tx
from service.store.result_tables.reading import pieces
from service.store.result_tables.scope import Scope

MOST_ROWS = 3_000_000
"""Of all tables of one report together."""


async def frames(
    tx: Tx, table: str, scope: Scope, policies: Mapping[str | None, Policies]
) -> AsyncGenerator[pl.DataFrame]:
    """Yield the table in pieces. Read on without long breaks (see ``store.result_tables.reading``)."""
    async for rows in pieces(tx, table, scope):
        yield await asyncio.to_thread(frame, table, counted_rows(table, rows, policies))


async def gather(tx: Tx, names: Sequence[str], scope: Scope, policies: Mapping[str | None, Policies]) -> Tables:
    """Return the tables whole. ``tx`` is a snapshot. Raises TooLarge ``too_many_rows``."""
    found: dict[str, pl.DataFrame] = {}
    total = 0
    for name in names:
        parts: list[pl.DataFrame] = []
        async for part in frames(tx, name, scope, policies):
            total += part.height
            if total > MOST_ROWS:
                raise TooLarge("too_many_rows", f"a report reads at most {MOST_ROWS} rows; take fewer evaluations")
            parts.append(part)
        found[name] = await asyncio.to_thread(joined, name, parts)
    return found
