"""``/v1/runs:stop``, ``:invalidate``, ``:revalidate``: many runs at once (NEEDS B17, B18)."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from service.api.auth import Caller, RunsWrite, State
from service.api.json_body import StrictRoute
from service.api.rendering import View, answer
from service.api.resources.leases import Body
from service.api.state import ApiState
from service.domain.bulk import RunsMeant
from service.domain.run_states import StopMode
from service.lifecycle.evaluations import invalidating
from service.lifecycle.evaluations.invalidating import Moved
from service.store import audit
from service.store.invalidations import Kind
from service.store.run_filters import filter_of

router = APIRouter(prefix="/v1", tags=["runs"], route_class=StrictRoute)


class Bulk(Body):
    filter: RunsMeant
    dry_run: bool = False
    """Only say how many would be changed."""


class BulkStop(Bulk):
    mode: StopMode


class BulkInvalidate(Bulk):
    reason: Annotated[str, Field(min_length=1, max_length=1_000)]


class BulkAnswer(View):
    matched: int
    """Runs that the filter lets through."""
    runs: int
    """Of them, those that were changed; with ``dry_run``, that would be."""
    more: bool
    """Time was over before all were seen: ask again."""
    dry_run: bool


@router.post("/runs:stop", operation_id="stop_runs", response_model=BulkAnswer)
async def stop_runs(body: BulkStop, caller: RunsWrite, state: State) -> Response:
    """Stop every run of the filter that is not done, as ``POST /v1/runs/{id}/stop`` does. May be repeated."""
    if body.dry_run:
        return await _counted(state, caller, body, Kind.STOP)
    where, by = filter_of(body.filter), caller.token.id
    moved = await invalidating.stop_all(state.db, caller.project_id, where, by, body.mode)
    return await _answer(state, caller, body, moved, Kind.STOP)


@router.post("/runs:invalidate", operation_id="invalidate_runs", response_model=BulkAnswer)
async def invalidate_runs(body: BulkInvalidate, caller: RunsWrite, state: State) -> Response:
    """Make every run of the filter that is done void: it stays visible, leaves every figure, and its slot in an evaluation
    counts as missing. May be repeated; ``runs:revalidate`` takes it back."""
    if body.dry_run:
        return await _counted(state, caller, body, Kind.INVALIDATE)
    where, by = filter_of(body.filter), caller.token.id
    moved = await invalidating.invalidate(state.db, caller.project_id, where, by, body.reason)
    return await _answer(state, caller, body, moved, Kind.INVALIDATE)


@router.post("/runs:revalidate", operation_id="revalidate_runs", response_model=BulkAnswer)
async def revalidate_runs(body: Bulk, caller: RunsWrite, state: State) -> Response:
    """Give every void run of the filter its outcome back. May be repeated."""
    if body.dry_run:
        return await _counted(state, caller, body, Kind.REVALIDATE)
    moved = await invalidating.revalidate(state.db, caller.project_id, filter_of(body.filter), caller.token.id)
    return await _answer(state, caller, body, moved, Kind.REVALIDATE)


async def _counted(state: ApiState, caller: Caller, body: Bulk, kind: Kind) -> Response:
    moved = await invalidating.count(state.db, caller.project_id, filter_of(body.filter), kind)
    return answer(BulkAnswer(matched=moved.matched, runs=moved.changed, more=False, dry_run=True))


async def _answer(state: ApiState, caller: Caller, body: Bulk, moved: Moved, kind: Kind) -> Response:
    detail = body.model_dump(mode="json", exclude={"filter": {"ids"}}, exclude_defaults=True)
    detail |= {"ids": len(body.filter.ids), "runs": moved.changed}
    async with state.db.transaction() as tx:
        await audit.record(tx, caller.project_id, caller.token.id, f"runs.{kind}", "", detail)
    return answer(BulkAnswer(matched=moved.matched, runs=moved.changed, more=moved.more, dry_run=False))
