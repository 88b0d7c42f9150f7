"""``/v1/operations``: what is being done in the background, how far it is, how it ended."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from service.api.auth import Caller, State, TokenCaller
from service.api.conditional import none_match, revision_tag
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.operation_view import Operation, operation_view
from service.api.operation_waiting import OperationStream, Until, wait_for_operation
from service.api.pagination import ListOf, Paging
from service.api.prefixed import only_known
from service.api.rendering import answer
from service.api.state import ApiState
from service.api.stream_slots import check_slot
from service.api.waiting import cache_control
from service.domain.errors import Invalid, NotFound
from service.domain.operations import ENDED_OPERATIONS
from service.lifecycle.operations.registry import KINDS
from service.store import audit, operations
from service.store.rows import OperationRow

router = APIRouter(prefix="/v1/operations", tags=["operations"], route_class=StrictRoute)
NO_KIND = ""
"""Stands for none of them: a filter without values would let all through."""


class OperationQuery(ListQuery):
    kind: Values = ()
    state: Values = ()


@router.get("", operation_id="list_operations", response_model=ListOf[Operation], responses=UNCHANGED)
async def list_operations(
    request: Request, caller: TokenCaller, state: State, page: Paging, query: Annotated[OperationQuery, Query()]
) -> Response:
    """List operations of the kinds that the token may read. Sorts: created_at."""
    readable = [name for name, found in KINDS.items() if caller.may(f"{found.noun}:read")]
    kinds = tuple(name for name in readable if not query.kind or name in query.kind) or (NO_KIND,)
    listed = source(request, operations.LISTING, caller.project_id, query, page, kind=kinds, state=query.state)
    names = chosen(query.fields, Operation)
    return await answer_list(request, state, listed, operation_view, names=names, total=query.total)


@router.get(
    "/{operation_id}",
    operation_id="get_operation",
    response_model=Operation,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
        204: {"description": "the stream has ended and the client has all of it"},
        304: {"description": "unchanged"},
    },
)
async def get_operation(
    operation_id: str,
    request: Request,
    caller: TokenCaller,
    state: State,
    wait_s: Annotated[float, Query(ge=0, le=60)] = 0,
    until: Until = "ended",
    last_event_id: Annotated[str | None, Header(max_length=32)] = None,
) -> Response:
    """Return an operation; the ETag is its revision. ``wait_s`` waits for ``until`` (ended | change) first.

    With ``Accept: text/event-stream``: each of its states, its revision as id, then ``event: end``.
    """
    only_known(request, ("wait_s", "until"), ())
    row = await _operation(state, caller, operation_id, "read")
    if "text/event-stream" in request.headers.get("accept", ""):
        return _stream(state, caller, row, _number(last_event_id))
    known = request.headers.get("if-none-match")
    if wait_s > 0:
        row = await wait_for_operation(state, caller, row, until, wait_s, known)
    tag = revision_tag(row.revision)
    headers = {"ETag": tag, "Cache-Control": cache_control(done=row.state in ENDED_OPERATIONS)}
    if none_match(known, tag):
        return Response(status_code=304, headers=headers)
    return answer(operation_view(row), headers=headers)


@router.post("/{operation_id}/cancel", operation_id="cancel_operation", response_model=Operation)
async def cancel_operation(operation_id: str, caller: TokenCaller, state: State) -> Response:
    """Ask for the end. What is running ends between two pieces of its work; what has ended is returned as it is."""
    await _operation(state, caller, operation_id, "write")
    async with state.db.transaction() as tx:
        row = await operations.request_cancel(tx, caller.project_id, operation_id)
        await audit.record(tx, caller.project_id, caller.token.id, "operation.cancel", operation_id, {})
    if row is None:
        raise NotFound("not_found")
    return answer(operation_view(row))


async def _operation(state: ApiState, caller: Caller, operation_id: str, verb: str) -> OperationRow:
    async with state.db.reading() as tx:
        row = await operations.get(tx, caller.project_id, operation_id)
    if row is None:
        raise NotFound("not_found")
    kind = KINDS.get(row.kind)
    caller.require("admin" if kind is None else f"{kind.noun}:{verb}")
    return row


def _stream(state: ApiState, caller: Caller, row: OperationRow, after: int) -> Response:
    if row.state in ENDED_OPERATIONS and after >= row.revision:
        return Response(status_code=204)
    check_slot(state, caller.token.id)
    return OperationStream(state, caller, row.id, after)


def _number(text: str | None) -> int:
    if text is not None and not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise Invalid("bad_last_event_id", "Last-Event-ID is a revision of the operation")
    return int(text or 0)
