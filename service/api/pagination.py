"""Lists: ``limit``, an opaque ``cursor`` and the ``next`` link (NEEDS D5)."""

import hashlib
import json
from typing import Annotated, Generic, TypeVar
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from pydantic import ConfigDict, Field

from service.api.auth import TICKET
from service.api.rendering import View
from service.domain import cursors
from service.store.rows import Cursor, Page

T = TypeVar("T")
MAX_LIMIT = 500
_NOT_MARKED = frozenset({"cursor", "limit", "total", "fields", TICKET})


class ListOf(View, Generic[T]):
    # For texts below fields pydantic looks through all modules for each kind of list: half a second of every start.
    model_config = ConfigDict(use_attribute_docstrings=False)

    data: list[T]
    next: str | None = Field(description="Relative URL of the next page; null at the end.")
    total: int | None = Field(default=None, description="Only when asked for.")


def _mark(request: Request) -> str:
    pairs = sorted((k, v) for k, v in request.query_params.multi_items() if k not in _NOT_MARKED)
    return hashlib.sha256(json.dumps([request.url.path, pairs]).encode()).hexdigest()[:12]


async def _page(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
    cursor: Annotated[str | None, Query(max_length=cursors.MAX_LENGTH)] = None,
) -> Page:
    return Page(cursors.decode(cursor, _mark(request)) if cursor else None, limit)


Paging = Annotated[Page, Depends(_page)]


def next_link(request: Request, cursor: Cursor | None) -> str | None:
    """Return the URL of the page after ``cursor``: this request's own, with the cursor replaced."""
    if cursor is None:
        return None
    pairs = [(k, v) for k, v in request.query_params.multi_items() if k not in ("cursor", TICKET)]
    return f"{request.url.path}?{urlencode([*pairs, ('cursor', cursors.encode(cursor, _mark(request)))])}"
