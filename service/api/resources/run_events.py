"""``/v1/runs/{id}/events``: the numbered log, as JSON pages or, by Accept, as Server-Sent Events."""

from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from service.api.auth import TICKET, Caller, RunsRead, State
from service.api.event_stream import EventStream, StreamRequest
from service.api.event_view import COARSE, EventPage, event_view
from service.api.json_body import StrictRoute
from service.api.prefixed import only_known
from service.api.rendering import answer
from service.api.state import ApiState
from service.api.stream_slots import check_slot
from service.domain.errors import Invalid, NotFound
from service.store import events
from service.store.poll import stream_state

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=StrictRoute)
MAX_SEQ = 2**63 - 1
_PARAMETERS = ("after", "limit", "types", "detail", "until")


@router.get(
    "/{run_id}/events",
    operation_id="list_run_events",
    response_model=EventPage,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
        204: {"description": "the stream has ended and the client has all of it"},
    },
)
async def list_run_events(
    run_id: str,
    request: Request,
    caller: RunsRead,
    state: State,
    after: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    types: Annotated[str | None, Query(max_length=1000)] = None,
    detail: Literal["full", "coarse"] = "full",
    until: Literal["ended", "graded"] = "graded",
    last_event_id: Annotated[str | None, Header(max_length=32)] = None,
) -> Response:
    """Return the events after number ``after``.

    With ``Accept: text/event-stream``: a live stream that resumes from ``Last-Event-ID``, tells ``event: end`` after
    the last event and closes; 204 when there is nothing more to come. ``types`` (separated by commas) and
    ``detail=coarse`` (no output, no resource samples) leave events out and keep the others' numbers.
    """
    only_known(request, _PARAMETERS, ())
    chosen = _types(types, detail)
    if "text/event-stream" in request.headers.get("accept", ""):
        start = after if last_event_id is None else _number(last_event_id)
        wanted = StreamRequest(caller.project_id, run_id, caller.token.id, start, chosen, until)
        return await _stream(state, wanted)
    return await _page(request, state, caller, run_id, after, limit, chosen)


def _types(types: str | None, detail: str) -> tuple[str, ...] | None:
    named = tuple(t for t in types.split(",") if t) if types is not None else None
    if detail == "full":
        return named
    return COARSE if named is None else tuple(t for t in named if t in COARSE)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= MAX_SEQ):
        raise Invalid("bad_last_event_id", "Last-Event-ID is the number of an event")
    return int(text)


async def _stream(state: ApiState, wanted: StreamRequest) -> Response:
    async with state.db.reading() as tx:
        seen = await stream_state(tx, wanted.project_id, wanted.run_id, wanted.token_id)
    if seen is None:
        raise NotFound("not_found")
    if wanted.over(seen) and wanted.after >= seen.last_seq:
        return Response(status_code=204)
    check_slot(state, wanted.token_id)
    return EventStream(state, wanted)


async def _page(
    request: Request,
    state: ApiState,
    caller: Caller,
    run_id: str,
    after: int,
    limit: int,
    types: tuple[str, ...] | None,
) -> Response:
    async with state.db.reading() as tx:
        seen = await stream_state(tx, caller.project_id, run_id, caller.token.id)
        if seen is None:
            raise NotFound("not_found")
        found = await events.read(tx, run_id, after, limit, types)
    full = len(found) == limit
    next_after = found[-1].seq if full else max(seen.last_seq, after, *(e.seq for e in found))
    pairs = [(k, v) for k, v in request.query_params.multi_items() if k not in ("after", TICKET)]
    link = f"{request.url.path}?{urlencode([*pairs, ('after', str(next_after))])}" if full else None
    page = EventPage(
        data=[event_view(e) for e in found],
        next=link,
        next_after=next_after,
        last_seq=seen.last_seq,
        finished=seen.finished and not full,
    )
    return answer(page)
