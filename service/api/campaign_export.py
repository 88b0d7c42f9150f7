"""Ratings and preferences as JSON lines or CSV, page by page: memory stays small however large the campaign is."""

from collections.abc import AsyncIterator
from typing import Any

from service.api.campaign_view import Preference, Rating, preference_view, rating_view
from service.api.table_text import csv_lines, json_lines
from service.store.campaigns import assignments, preferences
from service.store.database import Database, Tx
from service.store.paging import MAX_LIMIT

_COLUMNS = {"ratings": [*Rating.model_fields], "preferences": [*Preference.model_fields]}


async def exported(db: Database, campaign_id: str, table: str, format: str) -> AsyncIterator[bytes]:
    """Yield the table in pieces. Pages are of different moments; ratings that were submitted stay what they are."""
    if format == "csv":
        yield csv_lines([_COLUMNS[table]])
    after: str | None = None
    while True:
        async with db.reading() as tx:
            rows, following = await _page(tx, campaign_id, table, after)
        if rows:
            yield csv_lines([row[c] for c in _COLUMNS[table]] for row in rows) if format == "csv" else json_lines(rows)
        if following is None:
            return
        after = following


async def _page(tx: Tx, campaign_id: str, table: str, after: str | None) -> tuple[list[dict[str, Any]], str | None]:
    if table == "ratings":
        found = await assignments.page(tx, campaign_id, after, MAX_LIMIT, ("submitted",))
        rows = [rating_view(*parts).model_dump(mode="json") for parts in found.items]
        return rows, found.next[0] if found.next else None
    pairs = await preferences.page(tx, campaign_id, after, MAX_LIMIT)
    return [preference_view(p).model_dump(mode="json") for p in pairs.items], pairs.next[0] if pairs.next else None
