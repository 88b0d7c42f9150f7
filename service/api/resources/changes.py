"""``/v1/changes``: one feed of everything that changed in the project, that skips nothing (NEEDS D4)."""

import asyncio
from contextlib import aclosing, suppress
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from service.api.auth import TICKET, State, TokenCaller
from service.api.change_feed import ChangeStream, FeedRequest, looks
from service.api.change_view import ChangeList, changed_view, chosen_kinds, cursor_of, position_of
from service.api.json_body import StrictRoute
from service.api.prefixed import only_known
from service.api.rendering import answer
from service.api.state import ApiState
from service.api.stream_slots import check_slot, slot
from service.domain.cursors import MAX_LENGTH
from service.domain.errors import Gone, Unauthenticated
from service.store import changes
from service.store.changes import ChangePage, Position

router = APIRouter(prefix="/v1/changes", tags=["changes"], route_class=StrictRoute)
NOW = "now"
_PARAMETERS = ("after", "kinds", "wait_s", "limit")


@router.get(
    "",
    operation_id="list_changes",
    response_model=ChangeList,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def list_changes(
    request: Request,
    caller: TokenCaller,
    state: State,
    after: Annotated[str | None, Query(max_length=MAX_LENGTH)] = None,
    kinds: Annotated[str | None, Query(max_length=200)] = None,
    wait_s: Annotated[float, Query(ge=0, le=60)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    last_event_id: Annotated[str | None, Header(max_length=MAX_LENGTH)] = None,
) -> Response:
    """Return resources that changed after the cursor ``after``, each as it is now, deleted ones as tombstones.

    Without ``after``: all resources there are, once, then what changes. ``after=now``: only what changes from now on.
    ``kinds``: run, grading, operation, benchmark, campaign, evaluation, separated by commas; by default all that the
    token may read but campaigns and evaluations.
    ``wait_s`` waits for a change. With ``Accept: text/event-stream``: a live stream, its ids are cursors, and
    ``Last-Event-ID`` goes on. 410 ``cursor_expired`` when deletions since the cursor are not known any more: read anew
    without ``after``. A change may be told twice, none is left out.
    """
    only_known(request, _PARAMETERS, ())
    streaming = "text/event-stream" in request.headers.get("accept", "")
    chosen = chosen_kinds(caller, kinds)
    asked = FeedRequest(
        caller.project_id,
        caller.token.id,
        chosen,
        await _start(state, (last_event_id if streaming else None) or after, chosen),
        limit,
    )
    if not streaming:
        return _answer(request, asked, await _page(state, asked, wait_s))
    check_slot(state, caller.token.id)
    first = await _page(state, asked, 0)
    return ChangeStream(state, asked) if first.token_good else _answer(request, asked, first)


async def _start(state: ApiState, cursor: str | None, kinds: tuple[str, ...]) -> Position:
    if cursor == NOW:
        async with state.db.statement() as tx:
            return await changes.now(tx)
    return position_of(cursor, kinds) if cursor else Position()


async def _page(state: ApiState, asked: FeedRequest, wait_s: float) -> ChangePage:
    """Return the first page with something in it, or what there is after ``wait_s`` seconds. Raises Gone."""
    async with aclosing(looks(state, asked)) as pages:
        page = await anext(pages)
        if wait_s > 0 and not page.changes:
            check_slot(state, asked.token_id)
            with slot(state, asked.token_id), suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    while not page.changes and page.token_good and not page.expired:
                        page = await anext(pages)
    if page.expired:
        hint = "/v1/changes"
        raise Gone("cursor_expired", "deletions since this cursor are not known any more: begin anew", restart=hint)
    return page


def _answer(request: Request, asked: FeedRequest, page: ChangePage) -> Response:
    if not page.token_good:
        raise Unauthenticated("bad_credentials", "the token is unknown, expired or revoked")
    cursor = cursor_of(page.position, asked.kinds)
    link = _link(request, cursor) if page.full else None
    data = [changed_view(c, asked.kinds) for c in page.changes]
    headers = {"Cache-Control": "private, no-cache"}
    if link is not None:
        headers["Link"] = f'<{link}>; rel="next"'
    return answer(ChangeList.model_construct(data=data, next=link, next_after=cursor), headers=headers)


def _link(request: Request, cursor: str) -> str:
    pairs = [(k, v) for k, v in request.query_params.multi_items() if k not in ("after", TICKET)]
    return f"{request.url.path}?{urlencode([*pairs, ('after', cursor)])}"
