"""Keyset pages: stable under inserts, no OFFSET."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, tuple_

from service.domain.errors import Invalid
from service.store.database import Tx
from service.store.rows import Cursor, Page

MAX_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Sort:
    """An order by ``key``, then id. ``parse`` turns the text of a cursor back into a value of the key."""

    key: ColumnElement[Any]
    parse: Callable[[str], Any] = datetime.fromisoformat
    descending: bool = False


async def fetch_page(
    tx: Tx, query: Select[Any], sort: Sort, id_: ColumnElement[str], page: Page
) -> tuple[list[RowMapping], Cursor | None]:
    """Return one page and the cursor of the next. Raises Invalid("invalid_cursor" | "invalid_limit")."""
    if not 1 <= page.limit <= MAX_LIMIT:
        raise Invalid("invalid_limit", f"limit is 1 to {MAX_LIMIT}")
    query = query.add_columns(sort.key.label("sort_key"), id_.label("sort_id"))
    if page.cursor is not None:
        seen = tuple_(_parsed(sort, page.cursor[0]), page.cursor[1])
        here = tuple_(sort.key, id_)
        query = query.where(here < seen if sort.descending else here > seen)
    order = [sort.key.desc(), id_.desc()] if sort.descending else [sort.key, id_]
    rows = list((await tx.execute(query.order_by(*order).limit(page.limit + 1))).mappings())
    if len(rows) <= page.limit:
        return rows, None
    last = rows[page.limit - 1]
    return rows[: page.limit], (_text(last["sort_key"]), last["sort_id"])


def _parsed(sort: Sort, value: str) -> Any:
    try:
        return sort.parse(value)
    except ValueError as e:
        raise Invalid("invalid_cursor", "the cursor is not one of this list and sort") from e


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
