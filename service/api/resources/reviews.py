"""``/v1/reviews``: what people say against verdicts. ``POST /v1/gradings/{id}/contest`` and ``…/override`` make them."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from service.api.auth import Caller, GradingsRead, GradingsWrite, State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging
from service.api.rendering import Timestamp, View, answer
from service.api.resources.leases import Body
from service.lifecycle.reviewing import contest, override, withdraw
from service.store import audit, reviews
from service.store.database import Tx
from service.store.rows_grading import ReviewRow

router = APIRouter(prefix="/v1", tags=["gradings"], route_class=StrictRoute)
Number = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class Contest(Body):
    reason: Annotated[str, Field(min_length=1, max_length=10_000)]
    author: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Who says so; the token's id when absent."""


class Override(Contest):
    score: Number
    max_score: Number | None = None
    """The verdict's own when absent, and 1 where it has none."""


class Review(View):
    id: str
    run_id: str
    grading_id: str
    kind: str
    """contest | override"""
    author: str
    reason: str
    score: float | None
    max_score: float | None
    created_at: Timestamp
    withdrawn_at: Timestamp | None
    """Null while it stands."""


class ReviewQuery(ListQuery):
    run_id: Values = ()
    grading_id: Values = ()
    kind: Values = ()
    author: Values = ()


def review_view(row: ReviewRow) -> Review:
    return Review(**{name: getattr(row, name) for name in Review.model_fields})


@router.post("/gradings/{grading_id}/contest", operation_id="contest_grading", response_model=Review, status_code=201)
async def contest_grading(
    grading_id: str, body: Contest, request: Request, caller: GradingsWrite, state: State
) -> Response:
    """Say that a verdict is doubted. It stands, and is shown with the doubt. Takes an ``Idempotency-Key``."""

    async def work(tx: Tx) -> Made:
        row = await contest(tx, caller.project_id, grading_id, _author(body, caller), body.reason)
        return await _made(tx, caller, row)

    return await once(request, state, caller, f"POST /v1/gradings/{grading_id}/contest", work)


@router.post("/gradings/{grading_id}/override", operation_id="override_grading", response_model=Review, status_code=201)
async def override_grading(
    grading_id: str, body: Override, request: Request, caller: GradingsWrite, state: State
) -> Response:
    """Put a score in a verdict's place. The verdict is kept and shown; the run follows its newest override, and is flagged
    ``overridden``. Also of a verdict that failed. Takes an ``Idempotency-Key``.
    """

    async def work(tx: Tx) -> Made:
        author = _author(body, caller)
        row = await override(tx, caller.project_id, grading_id, author, body.reason, body.score, body.max_score)
        return await _made(tx, caller, row)

    return await once(request, state, caller, f"POST /v1/gradings/{grading_id}/override", work)


@router.get("/reviews", operation_id="list_reviews", response_model=ListOf[Review], responses=UNCHANGED)
async def list_reviews(
    request: Request, caller: GradingsRead, state: State, page: Paging, query: Annotated[ReviewQuery, Query()]
) -> Response:
    """List contests and overrides, withdrawn ones included. Sorts: created_at."""
    values = {name: getattr(query, name) for name in ("run_id", "grading_id", "kind", "author")}
    listed = source(request, reviews.LISTING, caller.project_id, query, page, **values)
    names = chosen(query.fields, Review)
    return await answer_list(request, state, listed, review_view, names=names, total=query.total)


@router.post("/reviews/{review_id}/withdraw", operation_id="withdraw_review", response_model=Review)
async def withdraw_review(review_id: str, caller: GradingsWrite, state: State) -> Response:
    """Take a contest or an override back; what stood before stands again. May be repeated."""
    async with state.db.transaction() as tx:
        row = await withdraw(tx, caller.project_id, review_id)
        await audit.record(tx, caller.project_id, caller.token.id, "review.withdraw", row.id)
    return answer(review_view(row))


def _author(body: Contest, caller: Caller) -> str:
    return body.author or caller.token.id


async def _made(tx: Tx, caller: Caller, row: ReviewRow) -> Made:
    detail = {"grading_id": row.grading_id, "author": row.author}
    await audit.record(tx, caller.project_id, caller.token.id, f"grading.{row.kind}", row.id, detail)
    return Made(review_view(row), 201, f"/v1/reviews?ids={row.id}")
