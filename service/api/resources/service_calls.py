"""``/v1/runs/{id}/service-calls``: the ledger of what a run asked gateway services, and the bodies for whoever debugs it."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import RunsDebug, RunsRead, State
from service.api.json_body import StrictRoute
from service.api.kept_bodies import MOST, Number, Side, body_answer
from service.api.lookups import run_or_404
from service.api.rendering import Timestamp, View, answer
from service.store import service_calls
from service.store.rows_requests import ServiceCallRow

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=StrictRoute)


class ServiceCall(View):
    id: str
    n: int
    """Of the run, from 1, over all attempts."""
    attempt: int
    state: str
    """started | finished"""
    service: str
    method: str
    path: str
    """Below the service, without a query."""
    status: int | None
    error: str | None
    bytes: int
    """Of the answer."""
    units: float | None
    """What the price per unit counts; null where there is none."""
    cost_usd: str | None
    """By the service's prices when the call left; null: it has none. 0 in a replay, where none leaves."""
    price_date: str | None
    seconds: float | None
    replay_of_n: int | None
    """In a replay: number of the recorded call that answered in the service's place; null: none did."""
    has_request_body: bool
    has_response_body: bool
    created_at: Timestamp
    finished_at: Timestamp | None


class ServiceCallPage(View):
    data: list[ServiceCall]
    next: str | None
    """Relative URL of what follows; null where that was all."""


def _view(row: ServiceCallRow) -> ServiceCall:
    values: dict[str, Any] = {name: getattr(row, name) for name in ServiceCall.model_fields if hasattr(row, name)}
    values |= {"has_request_body": row.request_blob is not None, "has_response_body": row.response_blob is not None}
    values["cost_usd"] = None if row.cost_usd is None else format(row.cost_usd.normalize(), "f")
    values["units"] = None if row.units is None else float(row.units)
    values["price_date"] = None if row.price_date is None else row.price_date.isoformat()
    return ServiceCall(**values)


@router.get("/{run_id}/service-calls", operation_id="list_service_calls", response_model=ServiceCallPage)
async def list_service_calls(
    run_id: str,
    request: Request,
    caller: RunsRead,
    state: State,
    after: Annotated[int, Query(ge=0, le=MOST)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Response:
    """Return the calls with numbers above ``after``, in order."""
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        rows = await service_calls.list_for_run(tx, run_id, after, limit)
    query = urlencode({"after": rows[-1].n, "limit": limit}) if len(rows) == limit else ""
    return answer(
        ServiceCallPage(data=[_view(row) for row in rows], next=f"{request.url.path}?{query}" if query else None)
    )


@router.get("/{run_id}/service-calls/{n}/body/{side}", operation_id="get_service_call_body", response_class=Response)
async def get_body(run_id: str, n: Number, side: Side, request: Request, caller: RunsDebug, state: State) -> Response:
    """Download a body as it was kept: without secrets, and cut where it was too long (``X-Body-Bytes`` is its true size).

    404 where none was kept; 410 ``body_gone`` where it was and cannot be read any more. What it holds is untrusted.
    """
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        rows = await service_calls.list_for_run(tx, run_id, n - 1, 1)
    row = rows[0] if rows and rows[0].n == n else None
    blob = None if row is None else row.request_blob if side == "request" else row.response_blob
    return await body_answer(request, state.blobs, blob, f"{run_id}-service-{n}-{side}")
