"""Lists: ``limit``, an opaque ``cursor`` and the ``next`` link (NEEDS D5).

A cursor holds the last row's sort value and id, and a fingerprint of the list it belongs to. It opens nothing that
the list would not: the project's predicate is in every query.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable
from typing import Annotated, Generic, TypeVar, cast
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from pydantic import BaseModel

from service.domain.errors import Invalid
from service.store.rows import Cursor, Page

T = TypeVar("T")
MAX_LIMIT = 500
_NOT_FINGERPRINTED = frozenset({"cursor", "limit", "total", "fields"})


class ListOf(BaseModel, Generic[T]):
    data: list[T]
    next: str | None
    """Relative URL of the next page; null at the end."""


def _fingerprint(request: Request) -> str:
    pairs = sorted((k, v) for k, v in request.query_params.multi_items() if k not in _NOT_FINGERPRINTED)
    return hashlib.sha256(json.dumps([request.url.path, pairs]).encode()).hexdigest()[:12]


def encode_cursor(request: Request, cursor: Cursor) -> str:
    raw = json.dumps([*cursor, _fingerprint(request)]).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_cursor(request: Request, text: str) -> Cursor:
    """Return the cursor. Raises Invalid for anything that this list did not hand out."""
    try:
        raw: object = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise Invalid("bad_cursor", "the cursor is damaged") from error
    parts = cast("list[object]", raw) if isinstance(raw, list) else []
    match parts:
        case [str(key), str(row_id), str(mark)] if mark == _fingerprint(request) and "\x00" not in key + row_id:
            return key, row_id
        case _:
            raise Invalid("bad_cursor", "the cursor belongs to another list, filter or sort")


def _page(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
) -> Page:
    return Page(decode_cursor(request, cursor) if cursor else None, limit)


Paging = Annotated[Page, Depends(_page)]


def next_link(request: Request, cursor: Cursor | None) -> str | None:
    """Return the URL of the page after ``cursor``: this request's own, with the cursor replaced."""
    if cursor is None:
        return None
    pairs: Iterable[tuple[str, str]] = [(k, v) for k, v in request.query_params.multi_items() if k != "cursor"]
    return f"{request.url.path}?{urlencode([*pairs, ('cursor', encode_cursor(request, cursor))])}"
