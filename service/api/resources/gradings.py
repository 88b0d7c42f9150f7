"""``/v1/gradings`` and a run's gradings: verdicts with their criteria, and grading anew without running anew."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import Caller, GradingsRead, GradingsWrite, State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.lookups import run_or_404
from service.api.rendering import Digest, Timestamp, View, answer, sha256_name
from service.api.resources.tasks import HIDDEN_READ
from service.domain.errors import NotFound
from service.lifecycle.grade import regrade
from service.store import gradings
from service.store.database import Tx
from service.store.rows import GradingRow

router = APIRouter(prefix="/v1", tags=["gradings"], route_class=StrictRoute)


class Grading(View):
    """One vote of one method on one sealed deliverable."""

    id: str
    run_id: str
    deliverable_digest: Digest
    method: str
    method_version: str
    settings: dict[str, Any] | None
    """Null without ``hidden:read``."""
    plan: str
    primary: bool
    round: int
    vote: int
    state: str
    """pending | grading | graded | abstained | failed"""
    score: float | None
    max_score: float | None
    fraction: float | None
    cause: str | None
    criteria: list[dict[str, Any]]
    tries: int
    created_at: Timestamp
    started_at: Timestamp | None
    graded_at: Timestamp | None


class GradingList(View):
    data: list[Grading]


class RegradeRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    round: int | None = Field(default=None, ge=1, le=1000)
    """Number of the new round; the next free one when absent."""


def _view(row: GradingRow, caller: Caller) -> Grading:
    known = row.score is not None and row.max_score
    return Grading(
        id=row.id,
        run_id=row.run_id,
        deliverable_digest=sha256_name(row.deliverable_digest),
        method=row.method,
        method_version=row.method_version,
        settings=row.settings if caller.may(HIDDEN_READ) else None,
        plan=row.plan,
        primary=row.primary,
        round=row.round,
        vote=row.vote,
        state=row.state,
        score=row.score,
        max_score=row.max_score,
        fraction=(row.score or 0.0) / row.max_score if known and row.max_score else None,
        cause=row.cause,
        criteria=row.criteria,
        tries=row.tries,
        created_at=row.created_at,
        started_at=row.started_at,
        graded_at=row.graded_at,
    )


@router.get("/runs/{run_id}/gradings", operation_id="list_gradings", response_model=GradingList)
async def list_gradings(run_id: str, caller: GradingsRead, state: State) -> Response:
    """List the gradings of a run, all rounds."""
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        rows = await gradings.list_for_run(tx, run_id)
    return answer(GradingList(data=[_view(r, caller) for r in rows]))


@router.post("/runs/{run_id}/gradings", operation_id="regrade_run", response_model=GradingList, status_code=202)
async def regrade_run(
    run_id: str, body: RegradeRequest, request: Request, caller: GradingsWrite, state: State
) -> Response:
    """Grade the sealed deliverable again, in a new round. Takes an ``Idempotency-Key``."""

    async def work(tx: Tx) -> Made:
        await run_or_404(tx, caller, run_id)
        rows = await regrade(tx, caller.project_id, run_id, body.round)
        return Made(GradingList(data=[_view(r, caller) for r in rows]), 202, f"/v1/runs/{run_id}/gradings")

    return await once(request, state, caller, f"POST /v1/runs/{run_id}/gradings", work)


@router.get("/gradings/{grading_id}", operation_id="get_grading", response_model=Grading)
async def get_grading(grading_id: str, caller: GradingsRead, state: State) -> Response:
    async with state.db.reading() as tx:
        row = await gradings.get(tx, caller.project_id, grading_id)
    if row is None:
        raise NotFound("not_found")
    return answer(_view(row, caller))
