"""``/v1/regrades``: a plan over many runs' deliverables, with an estimate first and a sample on request."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import GradingsRead, GradingsWrite, State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging
from service.api.rendering import Timestamp, View, answer
from service.api.resources.leases import Body
from service.domain.errors import NotFound
from service.domain.regrades import RegradeRequest
from service.lifecycle.regrades import Scope, cancel, comparison, draw_up, start
from service.store import audit, regrades
from service.store.database import Tx
from service.store.regrades import Progress
from service.store.rows_grading import RegradeRow

router = APIRouter(prefix="/v1/regrades", tags=["gradings"], route_class=StrictRoute)


class Start(Body):
    scope: Scope
    """``sample``: the sample only, compared once it is graded; ``all``: everything that is not graded yet."""


class RegradeProgress(View):
    runs: int
    sampled: int
    steps: dict[str, int]
    """Runs by step: waiting | queued | adopted | left_out."""
    gradings: dict[str, int]
    """By state."""


class RegradeHead(View):
    id: str
    revision: int
    plan: str
    state: str
    """draft | sampling | sampled | running | done | cancelled"""
    spec: dict[str, Any]
    """``filter`` or the number of ``runs``, ``sample``, ``primary``."""
    round: int
    estimate: dict[str, Any]
    """Made before anything was asked. ``cost_usd`` {p50, p90} and ``duration_s`` are null where a part is not known; ``basis``
    says what the cost is from: measured | other_judge (its tokens at this model's prices) | list_price (sizes assumed) |
    unknown | none (no judges)."""
    comparison: dict[str, Any] | None
    """Of the sample, later of all, with the verdicts that the runs had: n, difference {mean, interval, seed}, agreement,
    kappa, flips_up, flips_down, cost."""
    author: str
    created_at: Timestamp
    started_at: Timestamp | None
    ended_at: Timestamp | None


class Regrade(RegradeHead):
    progress: RegradeProgress


class RegradeQuery(ListQuery):
    plan: Values = ()
    state: Values = ()


def _head(row: RegradeRow) -> RegradeHead:
    names = ("id", "revision", "plan", "state", "spec", "round", "estimate", "comparison", "author")
    times = ("created_at", "started_at", "ended_at")
    return RegradeHead(**{name: getattr(row, name) for name in (*names, *times)})


def _view(row: RegradeRow, at: Progress) -> Regrade:
    progress = RegradeProgress(runs=at.runs, sampled=at.sampled, steps=dict(at.steps), gradings=dict(at.gradings))
    return Regrade(**dict(_head(row)), progress=progress)


async def _read(tx: Tx, row: RegradeRow) -> Regrade:
    return _view(row, await regrades.progress(tx, row.id))


@router.post("", operation_id="create_regrade", response_model=Regrade, status_code=201)
async def create_regrade(body: RegradeRequest, request: Request, caller: GradingsWrite, state: State) -> Response:
    """Fix which runs are meant and estimate what grading them takes; nothing is graded yet. Takes an ``Idempotency-Key``.

    The plan is checked against every task. 409 where the same plan, runs and round were started before.
    """

    async def work(tx: Tx) -> Made:
        row = await draw_up(tx, state.blobs, caller.project_id, body, caller.token.id)
        await audit.record(tx, caller.project_id, caller.token.id, "regrade.create", row.id, {"plan": row.plan})
        return Made(await _read(tx, row), 201, f"/v1/regrades/{row.id}")

    return await once(request, state, caller, "POST /v1/regrades", work)


@router.get("", operation_id="list_regrades", response_model=ListOf[RegradeHead], responses=UNCHANGED)
async def list_regrades(
    request: Request, caller: GradingsRead, state: State, page: Paging, query: Annotated[RegradeQuery, Query()]
) -> Response:
    """List regrades, without their progress. Sorts: created_at."""
    values = {"plan": query.plan, "state": query.state}
    listed = source(request, regrades.LISTING, caller.project_id, query, page, **values)
    names = chosen(query.fields, RegradeHead)
    return await answer_list(request, state, listed, _head, names=names, total=query.total)


@router.get("/{regrade_id}", operation_id="get_regrade", response_model=Regrade)
async def get_regrade(regrade_id: str, caller: GradingsRead, state: State) -> Response:
    """Return a regrade with its progress; while it runs, ``comparison`` is of what is graded so far."""
    async with state.db.snapshot() as tx:
        row = await regrades.get(tx, caller.project_id, regrade_id)
        if row is None:
            raise NotFound("not_found")
        view = await _read(tx, row)
        if row.state in ("sampling", "running"):
            view.comparison = await comparison(tx, row, sampled_only=row.state == "sampling")
    return answer(view)


@router.post("/{regrade_id}/start", operation_id="start_regrade", response_model=Regrade)
async def start_regrade(regrade_id: str, body: Start, caller: GradingsWrite, state: State) -> Response:
    """Grade the sample, or all. May be repeated."""
    async with state.db.transaction() as tx:
        row = await start(tx, caller.project_id, regrade_id, body.scope)
        await audit.record(tx, caller.project_id, caller.token.id, "regrade.start", row.id, {"scope": body.scope})
        view = await _read(tx, row)
    return answer(view)


@router.post("/{regrade_id}/cancel", operation_id="cancel_regrade", response_model=Regrade)
async def cancel_regrade(regrade_id: str, caller: GradingsWrite, state: State) -> Response:
    """End a regrade that is not done: what is graded stays beside the runs' verdicts, which do not change. May be repeated."""
    async with state.db.transaction() as tx:
        row = await cancel(tx, caller.project_id, regrade_id)
        await audit.record(tx, caller.project_id, caller.token.id, "regrade.cancel", row.id)
        view = await _read(tx, row)
    return answer(view)
