"""Ratings and preferences as JSON lines or CSV, page by page: memory stays small however large the campaign is."""

import csv
import io
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from service.api.campaign_view import Preference, Rating, preference_view, rating_view
from service.store.campaigns import assignments, preferences
from service.store.database import Database, Tx
from service.store.paging import MAX_LIMIT

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of cells that spreadsheets take for formulas."""
_COLUMNS = {"ratings": [*Rating.model_fields], "preferences": [*Preference.model_fields]}


async def exported(db: Database, campaign_id: str, table: str, format: str) -> AsyncIterator[bytes]:
    """Yield the table in pieces. Pages are of different moments; ratings that were submitted stay what they are."""
    if format == "csv":
        yield _csv([_COLUMNS[table]])
    after: str | None = None
    while True:
        async with db.reading() as tx:
            rows, following = await _page(tx, campaign_id, table, after)
        if rows:
            yield _csv([[_cell(row[c]) for c in _COLUMNS[table]] for row in rows]) if format == "csv" else _lines(rows)
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


def _lines(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _csv(rows: Sequence[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


def _cell(value: Any) -> object:
    """A text that a spreadsheet would run as a formula is told as text; what has parts is JSON."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value
