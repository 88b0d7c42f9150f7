"""``/v1/runs/{id}/model-requests``: the ledger of what a run asked models, and the bodies for whoever debugs it."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import RunsDebug, RunsRead, State
from service.api.json_body import StrictRoute
from service.api.kept_bodies import MOST, Number, Side, body_answer
from service.api.lookups import run_or_404
from service.api.rendering import Timestamp, View, answer
from service.api.resources.tasks import HIDDEN_READ
from service.domain.errors import NotFound
from service.store import model_requests
from service.store.rows_requests import ModelRequestRow

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=StrictRoute)
AGENT = "agent"
"""Purpose of the requests that hold nothing but what the agent knows."""


class ModelRequest(View):
    """One request of a run to a model. Tokens are 0 where ``usage_known`` is false."""

    id: str
    n: int
    """Of the run, from 1, over all attempts."""
    attempt: int
    purpose: str
    """agent | client | judge | check"""
    state: str
    """started | finished"""
    model_id: str | None
    provider: str | None
    dialect: str | None
    route: str
    requested_model: str | None
    reported_model: str | None
    finish_reason: str | None
    """Why the model stopped, in the dialect's own words."""
    provider_request_id: str | None
    streaming: bool
    status: int | None
    """What the client got; null: not yet, or it went away before."""
    error: str | None
    provider_error: bool
    """The error is the provider's doing."""
    tries: int
    usage_known: bool
    input_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    output_tokens: int
    reasoning_tokens: int
    """Of the output."""
    cost_usd: str | None
    cost_basis: str
    """measured | declared | unknown"""
    price_date: str | None
    server_tools: dict[str, int]
    """Provider-side tool → uses."""
    first_token_s: float | None
    total_s: float | None
    wait_s: float
    """For the provider: limits, outages."""
    has_request_body: bool
    has_response_body: bool
    created_at: Timestamp
    finished_at: Timestamp | None


class ModelRequestPage(View):
    data: list[ModelRequest]
    next: str | None
    """Relative URL of what follows; null where that was all."""


def _view(row: ModelRequestRow) -> ModelRequest:
    values: dict[str, Any] = {name: getattr(row, name) for name in ModelRequest.model_fields if hasattr(row, name)}
    cost = None if row.cost_usd is None else format(row.cost_usd.normalize(), "f")
    date = None if row.price_date is None else row.price_date.isoformat()
    values |= {"cost_usd": cost, "price_date": date, "attempt": row.attempt or 0, "n": row.n or 0}
    values["has_request_body"] = row.request_blob is not None
    values["has_response_body"] = row.response_blob is not None
    return ModelRequest(**values)


@router.get("/{run_id}/model-requests", operation_id="list_model_requests", response_model=ModelRequestPage)
async def list_model_requests(
    run_id: str,
    request: Request,
    caller: RunsRead,
    state: State,
    after: Annotated[int, Query(ge=0, le=MOST)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Response:
    """Return the requests with numbers above ``after``, in order."""
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        rows = await model_requests.list_for_run(tx, run_id, after, limit)
    query = urlencode({"after": rows[-1].n or 0, "limit": limit}) if len(rows) == limit else ""
    link = f"{request.url.path}?{query}" if query else None
    return answer(ModelRequestPage(data=[_view(row) for row in rows], next=link))


@router.get("/{run_id}/model-requests/{n}", operation_id="get_model_request", response_model=ModelRequest)
async def get_model_request(run_id: str, n: Number, caller: RunsRead, state: State) -> Response:
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        row = await model_requests.get(tx, run_id, n)
    if row is None:
        raise NotFound("not_found")
    return answer(_view(row))


@router.get("/{run_id}/model-requests/{n}/body/{side}", operation_id="get_model_request_body", response_class=Response)
async def get_body(run_id: str, n: Number, side: Side, request: Request, caller: RunsDebug, state: State) -> Response:
    """Download a body as it was kept: without secrets, and cut where it was too long (``X-Body-Bytes`` is its true size).

    Those of the agent's own requests; a simulated client's or a judge's hold hidden assets and need ``hidden:read`` too.
    404 where none was kept; 410 ``body_gone`` where it was and cannot be read any more. What it holds is untrusted.
    """
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        row = await model_requests.get(tx, run_id, n)
    if row is not None and row.purpose != AGENT:
        caller.require(HIDDEN_READ)
    blob = None if row is None else row.request_blob if side == "request" else row.response_blob
    return await body_answer(request, state.blobs, blob, f"{run_id}-{n}-{side}")
