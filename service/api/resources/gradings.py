"""``/v1/gradings`` and a run's gradings: verdicts with their criteria, and grading anew without running anew."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import Caller, GradingsRead, GradingsWrite, State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.lookups import run_or_404
from service.api.pagination import ListOf, Paging, next_link
from service.api.prefixed import only_known
from service.api.rendering import Digest, Timestamp, View, answer, sha256_name
from service.api.resources.reviews import Review, review_view
from service.api.resources.tasks import HIDDEN_READ
from service.domain.errors import Invalid, NotFound
from service.domain.verdicts import HIDDEN_DETAIL
from service.lifecycle.estimates import money
from service.lifecycle.regrading import regrade
from service.store import criteria, grading_lists, gradings, judge_figures, model_requests, reviews
from service.store.database import Tx
from service.store.rows import CriterionRow, Cursor, GradingRow

router = APIRouter(prefix="/v1", tags=["gradings"], route_class=StrictRoute)


class Criterion(View):
    """What was decided on one test, question or rubric item."""

    id: str
    passed: bool | None
    """Null: not decided."""
    score: float | None
    max_score: float | None
    cause: str | None
    """Why it did not pass, typed by the method."""
    reason: str | None
    detail: dict[str, Any]
    """The method's own. ``rubric`` and ``criterion``, the hidden texts, are there with ``hidden:read`` only."""


class GradingHead(View):
    """One vote of one method on one sealed deliverable, without its criteria."""

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
    detail: dict[str, Any]
    """The method's own summary."""
    queue: str
    """Who decides: rooms (a process with sandboxes) | judges (models) | people"""
    priority: int
    put_offs: int
    """Times that it was put off because something it needs was away."""
    not_before: Timestamp | None
    regrade_id: str | None
    tries: int
    created_at: Timestamp
    started_at: Timestamp | None
    graded_at: Timestamp | None


class Grading(GradingHead):
    """One vote of one method on one sealed deliverable."""

    criteria: list[Criterion]
    """The first 100; ``/v1/gradings/{id}/criteria`` has all."""
    criteria_total: int
    votes_total: int = 0
    """Of judges, invalid ones included: ``/v1/gradings/{id}/votes``."""
    override: Review | None = None
    """What a person put in the verdict's place, the newest that stands; score and state above are the verdict's own."""
    contests: int = 0
    """Doubts that stand."""
    cost_usd: str | None = None
    """Of its judges' calls; null where that is not known, or there were none."""


class GradingList(View):
    data: list[Grading]


class GradingQuery(ListQuery):
    run_id: Values = ()
    method: Values = ()
    plan: Values = ()
    state: Values = ()
    cause: Values = ()
    queue: Values = ()
    regrade_id: Values = ()


FILTERS = ("run_id", "method", "plan", "state", "cause", "queue", "regrade_id")


class RegradeRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    round: int | None = Field(default=None, ge=1, le=1000)
    """Number of the new round; the next free one when absent."""
    plan: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Grading plan, ``name@version`` or a name for its newest version; the run's own when absent."""
    primary: bool = False
    """Make the plan the run's own, together with its verdict; till then the old verdict stands."""


def view(row: GradingRow, caller: Caller, beside: Mapping[str, Any] | None = None) -> Grading:
    """``beside``: what other tables say, from :func:`beside`."""
    criteria = [_criterion(c, caller) for c in row.criteria]
    head = dict(_head(row, caller))
    return Grading(**head, criteria=criteria, criteria_total=row.criteria_total, **(beside or {}))


async def beside(tx: Tx, caller: Caller, rows: Sequence[GradingRow]) -> dict[str, dict[str, Any]]:
    """Return votes, reviews and cost of each grading."""
    ids = [row.id for row in rows]
    panels = await judge_figures.panels(tx, ids)
    standing = await reviews.standing(tx, ids)
    costs = await model_requests.cost_of(tx, caller.project_id, ids)
    found: dict[str, dict[str, Any]] = {}
    for id_ in ids:
        cost, own = costs.get(id_), [r for r in standing if r.grading_id == id_]
        overrides = [r for r in own if r.kind == reviews.OVERRIDE]
        found[id_] = {
            "votes_total": sum(said.votes for said in panels if said.grading_id == id_),
            "override": review_view(overrides[-1]) if overrides else None,
            "contests": len(own) - len(overrides),
            "cost_usd": None if cost is None or cost.usd is None or cost.unknown else money(cost.usd),
        }
    return found


def _head(row: GradingRow, caller: Caller) -> GradingHead:
    known = row.score is not None and row.max_score
    return GradingHead(
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
        detail=row.detail,
        queue=row.queue,
        priority=row.priority,
        put_offs=row.put_offs,
        not_before=row.not_before,
        regrade_id=row.regrade_id,
        tries=row.tries,
        created_at=row.created_at,
        started_at=row.started_at,
        graded_at=row.graded_at,
    )


def _criterion(row: CriterionRow, caller: Caller) -> Criterion:
    names = ("passed", "score", "max_score", "cause", "reason")
    hidden = frozenset[str]() if caller.may(HIDDEN_READ) else HIDDEN_DETAIL
    detail = {name: value for name, value in row.detail.items() if name not in hidden}
    return Criterion(id=row.criterion, detail=detail, **{name: getattr(row, name) for name in names})


@router.get("/runs/{run_id}/gradings", operation_id="list_gradings", response_model=GradingList)
async def list_gradings(run_id: str, caller: GradingsRead, state: State) -> Response:
    """List the gradings of a run, all rounds."""
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        rows = await gradings.list_for_run(tx, run_id)
        known = await beside(tx, caller, rows)
    return answer(GradingList(data=[view(r, caller, known[r.id]) for r in rows]))


@router.post("/runs/{run_id}/gradings", operation_id="regrade_run", response_model=GradingList, status_code=202)
async def regrade_run(
    run_id: str, body: RegradeRequest, request: Request, caller: GradingsWrite, state: State
) -> Response:
    """Grade the sealed deliverable again, in a new round. Takes an ``Idempotency-Key``."""

    async def work(tx: Tx) -> Made:
        await run_or_404(tx, caller, run_id)
        rows = await regrade(tx, caller.project_id, run_id, body.round, plan=body.plan, primary=body.primary)
        return Made(GradingList(data=[view(r, caller) for r in rows]), 202, f"/v1/runs/{run_id}/gradings")

    return await once(request, state, caller, f"POST /v1/runs/{run_id}/gradings", work)


@router.get("/gradings", operation_id="list_all_gradings", response_model=ListOf[GradingHead], responses=UNCHANGED)
async def list_all_gradings(
    request: Request, caller: GradingsRead, state: State, page: Paging, query: Annotated[GradingQuery, Query()]
) -> Response:
    """List the gradings of all runs, without their criteria. Sorts: created_at, score."""
    values = {name: getattr(query, name) for name in FILTERS}
    listed = source(request, grading_lists.LISTING, caller.project_id, query, page, **values)
    names = chosen(query.fields, GradingHead)
    return await answer_list(request, state, listed, lambda row: _head(row, caller), names=names, total=query.total)


@router.get("/gradings/{grading_id}", operation_id="get_grading", response_model=Grading)
async def get_grading(grading_id: str, caller: GradingsRead, state: State) -> Response:
    async with state.db.reading() as tx:
        row = await gradings.get(tx, caller.project_id, grading_id)
        if row is None:
            raise NotFound("not_found")
        known = await beside(tx, caller, [row])
    return answer(view(row, caller, known[row.id]))


@router.get("/gradings/{grading_id}/criteria", operation_id="list_criteria", response_model=ListOf[Criterion])
async def list_criteria(
    grading_id: str,
    request: Request,
    caller: GradingsRead,
    state: State,
    page: Paging,
    cause: Annotated[str | None, Query(max_length=64)] = None,
    passed: bool | None = None,
) -> Response:
    """List what was decided on each criterion, in the method's order; ``cause`` and ``passed`` choose."""
    only_known(request, ("limit", "cursor", "cause", "passed"), ())
    async with state.db.reading() as tx:
        if await gradings.get(tx, caller.project_id, grading_id) is None:
            raise NotFound("not_found")
        found = await criteria.page(tx, grading_id, _position(page.cursor), page.limit, cause=cause, passed=passed)
    return answer(
        ListOf[Criterion](data=[_criterion(c, caller) for c in found.items], next=next_link(request, found.next))
    )


def _position(cursor: Cursor | None) -> int:
    if cursor is None:
        return 0
    if not (cursor[0].isascii() and cursor[0].isdecimal() and len(cursor[0]) < 10):
        raise Invalid("bad_cursor", "the cursor is not one of this list")
    return int(cursor[0])
