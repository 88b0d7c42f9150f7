"""``/v1/forecast-sets``: what models say beforehand of an agent's work (NEEDS A25)."""

from collections.abc import Collection
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from service.api.auth import Caller, RunsRead, RunsWrite, State
from service.api.forecast_view import (
    Brought,
    ForecastSet,
    ForecastSetHead,
    ForecastView,
    forecast_view,
    head_view,
    set_view,
)
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Source, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging
from service.api.rendering import answer
from service.api.resources.leases import Body
from service.domain.errors import NotFound
from service.domain.forecasts import MOST_IMPORTED, ForecastSetSpec, ImportedForecast
from service.domain.tasks import canonical_digest
from service.lifecycle.forecasts.drafting import bring, cancel, draw_up, start
from service.store import audit, forecasts, model_requests
from service.store.database import Tx
from service.store.rows import Slice
from service.store.rows_forecasts import ForecastRow, ForecastSetRow

router = APIRouter(prefix="/v1/forecast-sets", tags=["forecasts"], route_class=StrictRoute)
Dated = tuple[ForecastRow, datetime | None]


class Start(Body):
    retry_failed: bool = False
    """Ask again for what failed; excluded ones stay excluded."""


class Bring(Body):
    forecasts: Annotated[list[ImportedForecast], Field(min_length=1, max_length=MOST_IMPORTED)]


class SetQuery(ListQuery):
    state: Values = ()
    benchmark_id: Values = ()
    agent_id: Values = ()


class ForecastQuery(ListQuery):
    task_id: Values = ()
    forecaster: Values = ()
    prompt: Values = ()
    state: Values = ()
    source: Values = ()


async def _view(tx: Tx, row: ForecastSetRow) -> ForecastSet:
    cost = (await model_requests.cost_of(tx, row.project_id, [row.id])).get(row.id)
    return set_view(row, len(await forecasts.tasks_of(tx, row.id)), cost)


async def _row(tx: Tx, caller: Caller, set_id: str) -> ForecastSetRow:
    row = await forecasts.get(tx, caller.project_id, set_id)
    if row is None:
        raise NotFound("not_found")
    return row


@router.post("", operation_id="create_forecast_set", response_model=ForecastSet, status_code=201)
async def create_forecast_set(body: ForecastSetSpec, request: Request, caller: RunsWrite, state: State) -> Response:
    """Fix tasks and forecasters and estimate what asking takes; nobody is asked yet. Takes an ``Idempotency-Key``.

    404 ``benchmark_not_found``, ``task_not_found``, ``agent_not_found``; 422 ``no_tasks``, ``too_many_forecasts``,
    ``unknown_model``, ``unknown_effort``, ``unknown_template``.
    """

    async def work(tx: Tx) -> Made:
        row = await draw_up(tx, state.blobs, caller.project_id, body, caller.token.id)
        await audit.record(tx, caller.project_id, caller.token.id, "forecasts.create", row.id)
        return Made(await _view(tx, row), 201, f"/v1/forecast-sets/{row.id}")

    return await once(request, state, caller, "POST /v1/forecast-sets", work)


@router.get("", operation_id="list_forecast_sets", response_model=ListOf[ForecastSetHead], responses=UNCHANGED)
async def list_forecast_sets(
    request: Request, caller: RunsRead, state: State, page: Paging, query: Annotated[SetQuery, Query()]
) -> Response:
    """List forecast sets. Also takes ``label.<name>=<value>``. Sorts: created_at, name."""
    values = {"state": query.state, "benchmark_id": query.benchmark_id, "agent_id": query.agent_id}
    listed = source(request, forecasts.LISTING, caller.project_id, query, page, **values)
    names = chosen(query.fields, ForecastSetHead)
    return await answer_list(request, state, listed, head_view, names=names, total=query.total)


@router.get("/{set_id}", operation_id="get_forecast_set", response_model=ForecastSet)
async def get_forecast_set(set_id: str, caller: RunsRead, state: State) -> Response:
    """Return a set with its counts and what it has cost so far."""
    async with state.db.snapshot() as tx:
        view = await _view(tx, await _row(tx, caller, set_id))
    return answer(view)


@router.post("/{set_id}/start", operation_id="start_forecast_set", response_model=ForecastSet)
async def start_forecast_set(set_id: str, body: Start, caller: RunsWrite, state: State) -> Response:
    """Ask for what is missing. May be repeated; also goes on with a set that was stopped or cancelled.

    409 ``forecasts_complete``; 422 ``no_forecasters``.
    """
    async with state.db.transaction() as tx:
        row = await start(tx, caller.project_id, set_id, retry_failed=body.retry_failed)
        await audit.record(tx, caller.project_id, caller.token.id, "forecasts.start", row.id)
        view = await _view(tx, row)
    return answer(view)


@router.post("/{set_id}/cancel", operation_id="cancel_forecast_set", response_model=ForecastSet)
async def cancel_forecast_set(set_id: str, caller: RunsWrite, state: State) -> Response:
    """Ask for nothing more; what was made stays. May be repeated. 409 ``forecasts_complete``."""
    async with state.db.transaction() as tx:
        row = await cancel(tx, caller.project_id, set_id)
        await audit.record(tx, caller.project_id, caller.token.id, "forecasts.cancel", row.id)
        view = await _view(tx, row)
    return answer(view)


@router.get(
    "/{set_id}/forecasts", operation_id="list_forecasts", response_model=ListOf[ForecastView], responses=UNCHANGED
)
async def list_forecasts(
    set_id: str,
    request: Request,
    caller: RunsRead,
    state: State,
    page: Paging,
    query: Annotated[ForecastQuery, Query()],
) -> Response:
    """List a set's forecasts. Sorts: created_at."""
    async with state.db.reading() as tx:
        row = await _row(tx, caller, set_id)
    values = {name: getattr(query, name) for name in ("task_id", "forecaster", "prompt", "state", "source")}
    listed = source(request, forecasts.ROWS, caller.project_id, query, page, set_id=(set_id,), **values)

    async def dated(tx: Tx) -> Slice[Dated]:
        found = await listed.page(tx)
        return Slice(await _dated(tx, row, found.items), found.next)

    async def fingerprint(tx: Tx) -> str:
        """A forecast never changes, but what is known of the attempt that it was made of does."""
        began = sorted((await _began(tx, row, None)).items())
        return f"{await listed.fingerprint(tx)}-{canonical_digest([[k, v.isoformat()] for k, v in began])[:16]}"

    names = chosen(query.fields, ForecastView)
    whole = Source(fingerprint, dated, listed.count)
    return await answer_list(request, state, whole, lambda of: forecast_view(*of), names=names, total=query.total)


@router.post("/{set_id}/forecasts", operation_id="import_forecasts", response_model=Brought)
async def import_forecasts(set_id: str, body: Bring, caller: RunsWrite, state: State) -> Response:
    """Record forecasts that were made elsewhere, marked as imported, at most 2 000 in one call; known ones stay as they are.

    ``declared_at`` is kept and proves nothing: ``made_before_attempt`` goes by when they came here. 422 ``task_not_in_set``.
    """
    async with state.db.transaction() as tx:
        new = await bring(tx, caller.project_id, set_id, body.forecasts)
        detail = {"new": new, "brought": len(body.forecasts)}
        await audit.record(tx, caller.project_id, caller.token.id, "forecasts.import", set_id, detail)
    return answer(Brought(new=new, known=len(body.forecasts) - new))


async def _dated(tx: Tx, row: ForecastSetRow, found: list[ForecastRow]) -> list[Dated]:
    began = await _began(tx, row, {one.task_id for one in found})
    return [(one, began.get(one.task_id)) for one in found]


async def _began(tx: Tx, row: ForecastSetRow, task_ids: Collection[str] | None) -> dict[str, datetime]:
    """Return when the set's agent first began on tasks, null: on all of the set."""
    if row.agent_id is None:
        return {}
    wanted = [one.task_id for one in await forecasts.tasks_of(tx, row.id)] if task_ids is None else task_ids
    return await forecasts.first_attempts(tx, row.project_id, row.agent_id, wanted)
