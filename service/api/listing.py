"""Lists over HTTP: the query that all of them take, and the answer with its ETag, ``next`` and ``total``."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict
from starlette.responses import Response

from service.api.conditional import none_match
from service.api.pagination import next_link
from service.api.prefixed import OPEN, only_known, prefixed
from service.api.rendering import json_answer
from service.api.state import ApiState
from service.domain.errors import Invalid
from service.store.database import Tx
from service.store.listing import ListFilter, Listing
from service.store.rows import Page, Slice

T = TypeVar("T")
MAX_IDS = 200
Values = Annotated[tuple[str, ...], Query(max_length=32)]
"""A filter that may be given several times."""
UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "unchanged since the ETag"}}
MAX_AGE_S = 2
"""Polling hint: how long a client should leave a list alone."""


class ListQuery(BaseModel):
    """Filters hold together; a filter given several times holds if one of its values does."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    ids: str | None = None
    """Up to 200 ids, separated by commas."""
    created_after: AwareDatetime | None = None
    created_before: AwareDatetime | None = None
    sort: str = "-created_at"
    """Name of an order, downwards with ``-``; ties by id. An unknown one is refused with the names there are."""
    fields: str | None = None
    """Names of top-level members to return, separated by commas; ``id`` always comes."""
    total: bool = False
    """Whether to count all that the filter matches."""


@dataclass(frozen=True, slots=True)
class Source(Generic[T]):
    """Where a list's parts come from, each within a given transaction."""

    fingerprint: Callable[[Tx], Awaitable[str]]
    page: Callable[[Tx], Awaitable[Slice[T]]]
    count: Callable[[Tx], Awaitable[int]]


def split_ids(ids: str | None) -> tuple[str, ...]:
    """Raises Invalid for too many."""
    found = tuple(i for i in (ids or "").split(",") if i)
    if len(found) > MAX_IDS:
        raise Invalid("too_many_ids", f"at most {MAX_IDS} ids in one call")
    return found


def source(
    request: Request, listing: Listing[T], project_id: str, query: ListQuery, page: Page, **values: tuple[str, ...]
) -> Source[T]:
    """Return where the answer comes from. Raises Invalid for an unknown parameter or sort, or too many ids."""
    takes = [prefix for prefix, has in ((OPEN[0], listing.labels is not None), (OPEN[1], listing.facets)) if has]
    only_known(request, {*type(query).model_fields, "limit", "cursor"}, tuple(takes))
    if query.sort not in listing.sorts:
        raise Invalid("unknown_sort", "this list cannot be sorted so", known=[*listing.sorts])
    where = ListFilter(
        ids=split_ids(query.ids),
        values=values,
        labels=prefixed(request, OPEN[0]),
        facets=prefixed(request, OPEN[1]),
        created_after=query.created_after,
        created_before=query.created_before,
    )
    return Source(
        lambda tx: listing.fingerprint(tx, project_id, where),
        lambda tx: listing.page(tx, project_id, where, query.sort, page),
        lambda tx: listing.count(tx, project_id, where),
    )


def chosen(fields: str | None, view: type[BaseModel]) -> set[str] | None:
    """Return the members to show, or None for all. Raises Invalid for a name that ``view`` does not have."""
    if fields is None:
        return None
    names = {n for n in fields.split(",") if n} | {"id"}
    unknown = sorted(names - set(view.model_fields))
    if unknown:
        raise Invalid("unknown_field", f"there is no member {unknown[0]!r}", known=sorted(view.model_fields))
    return names


async def answer_list(
    request: Request,
    state: ApiState,
    source: Source[T],
    view: Callable[[T], BaseModel],
    *,
    names: set[str] | None = None,
    total: bool = False,
) -> Response:
    """Answer 304 from the fingerprint alone where the client has it all, else a page with its ETag.

    ETag and page are of one snapshot: a tag never promises more than what came with it.
    """
    known = request.headers.get("if-none-match")
    if known is not None:
        async with state.db.statement() as tx:
            headers = _headers(await source.fingerprint(tx))
        if none_match(known, headers["ETag"]):
            return Response(status_code=304, headers=headers)
    async with state.db.snapshot() as tx:
        headers = _headers(await source.fingerprint(tx))
        found = await source.page(tx)
        count = await source.count(tx) if total else None
    link = next_link(request, found.next)
    if link is not None:
        headers["Link"] = f'<{link}>; rel="next"'
    body: dict[str, Any] = {"data": [view(row).model_dump(mode="json", include=names) for row in found.items]}
    body["next"] = link
    if total:
        body["total"] = count
    return json_answer(_dumps(body), headers=headers)


def _headers(fingerprint: str) -> dict[str, str]:
    return {"ETag": f'"{fingerprint}"', "Cache-Control": f"private, max-age={MAX_AGE_S}"}


def _dumps(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
