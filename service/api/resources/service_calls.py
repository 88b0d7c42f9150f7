"""``/v1/runs/{id}/service-calls``: the ledger of what a run asked gateway services."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import RunsRead, State
from service.api.json_body import StrictRoute
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
    """By the service's prices when the call left; null: it has none."""
    price_date: str | None
    seconds: float | None
    created_at: Timestamp
    finished_at: Timestamp | None


class ServiceCallPage(View):
    data: list[ServiceCall]
    next: str | None
    """Relative URL of what follows; null where that was all."""


def _view(row: ServiceCallRow) -> ServiceCall:
    values: dict[str, Any] = {name: getattr(row, name) for name in ServiceCall.model_fields}
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
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
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
