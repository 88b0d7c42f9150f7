"""``/v1/gradings/{id}/votes``: what each judge said, and what it was asked."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import Caller, GradingsRead, State
from service.api.downloads import FALLBACK_TYPE, download_headers, file_answer
from service.api.json_body import StrictRoute
from service.api.pagination import ListOf, Paging, next_link
from service.api.prefixed import only_known
from service.api.rendering import Timestamp, View, answer
from service.api.resources.tasks import HIDDEN_READ
from service.domain.errors import Gone, NotFound
from service.store import gradings, votes
from service.store.database import Tx
from service.store.rows_grading import VoteRow

router = APIRouter(prefix="/v1/gradings", tags=["gradings"], route_class=StrictRoute)


class VoteView(View):
    """One opinion of one judge."""

    judge: str
    """Model and digest of its settings."""
    item: str
    """What it is about within the grading; empty: the whole."""
    n: int
    state: str
    """valid | invalid: no opinion, and never counted as one"""
    content: dict[str, Any] | None
    """The method's own; null without ``hidden:read``: judges quote the criteria."""
    cause: str | None
    """Why it is invalid."""
    asks: int
    model: str | None
    """As the provider reports it."""
    template: str
    """Name@version of the prompt."""
    template_sha256: str | None
    rendered_sha256: str | None
    """Of what was asked last."""
    usage: dict[str, Any] | None
    """Tokens of all its answers."""
    took_s: float | None
    created_at: Timestamp


def _view(row: VoteRow, caller: Caller) -> VoteView:
    values = {name: getattr(row, name) for name in VoteView.model_fields}
    values["content"] = row.content if caller.may(HIDDEN_READ) else None
    return VoteView(**values)


@router.get("/{grading_id}/votes", operation_id="list_votes", response_model=ListOf[VoteView])
async def list_votes(grading_id: str, request: Request, caller: GradingsRead, state: State, page: Paging) -> Response:
    """List the votes of a grading by item, judge and number, as far as they are in."""
    only_known(request, ("limit", "cursor"), ())
    async with state.db.reading() as tx:
        await _grading(tx, caller, grading_id)
        found = await votes.page(tx, grading_id, page.cursor, page.limit)
    return answer(ListOf[VoteView](data=[_view(v, caller) for v in found.items], next=next_link(request, found.next)))


@router.get("/{grading_id}/votes/rendered", operation_id="get_rendered_vote", response_class=Response)
async def get_rendered_vote(
    grading_id: str,
    request: Request,
    caller: GradingsRead,
    state: State,
    judge: Annotated[str, Query(max_length=200)] = "",
    n: Annotated[int, Query(ge=1, le=1000)] = 1,
    item: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Download what ``judge`` was asked last for vote ``n`` on ``item``: JSON with system, text and the digests of images. Needs ``hidden:read``.

    What it quotes of the deliverable is untrusted. 404 where nothing was kept, 410 ``body_gone`` where it cannot be read.
    """
    caller.require(HIDDEN_READ)
    async with state.db.reading() as tx:
        await _grading(tx, caller, grading_id)
        row = await votes.get(tx, grading_id, judge, item, n)
    if row is None or row.rendered_sha256 is None:
        raise NotFound("not_found")
    try:
        size = await asyncio.to_thread(state.blobs.size, row.rendered_sha256)
        file = state.blobs.open(row.rendered_sha256)
    except NotFound as error:
        raise Gone("body_gone", "what was asked cannot be read any more") from error
    headers = download_headers(f"{grading_id}-{n}-asked.json", f'"{row.rendered_sha256}"')
    return file_answer(request, file, size, FALLBACK_TYPE, headers)


async def _grading(tx: Tx, caller: Caller, grading_id: str) -> None:
    if await gradings.get(tx, caller.project_id, grading_id) is None:
        raise NotFound("not_found")
