"""``/v1/annotation-sets``: items labelled by models or people, and facets of tasks made of that (NEEDS A18)."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from service.api.annotation_view import (
    AnnotationSet,
    AnnotationSetHead,
    AnnotationValue,
    AnnotationView,
    BroughtAnnotations,
    annotation_view,
    head_view,
    set_view,
    value_view,
)
from service.api.auth import Caller, RunsRead, RunsWrite, State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging, next_link
from service.api.rendering import answer
from service.api.resources.leases import Body
from service.domain.annotations import MOST_BROUGHT, AnnotationSetRequest, BroughtAnnotation
from service.domain.errors import NotFound
from service.lifecycle.annotations.agreeing import agreement_of
from service.lifecycle.annotations.drafting import accept, bring, cancel, draw_up, start
from service.store import annotations, audit, model_requests
from service.store.database import Tx
from service.store.rows_annotations import AnnotationSetRow

router = APIRouter(prefix="/v1/annotation-sets", tags=["annotations"], route_class=StrictRoute)


class Start(Body):
    retry_failed: bool = False
    """Ask again for what failed; what was refused or unreadable stays so."""


class Bring(Body):
    annotations: Annotated[list[BroughtAnnotation], Field(min_length=1, max_length=MOST_BROUGHT)]


class SetQuery(ListQuery):
    name: Values = ()
    state: Values = ()
    about: Values = ()
    benchmark_id: Values = ()


class VoteQuery(ListQuery):
    target: Values = ()
    annotator: Values = ()
    state: Values = ()


async def _view(tx: Tx, row: AnnotationSetRow) -> AnnotationSet:
    cost = (await model_requests.cost_of(tx, row.project_id, [row.id])).get(row.id)
    targets, valued = await annotations.count_targets(tx, row.id)
    return set_view(row, targets, valued, await agreement_of(tx, row), cost)


async def _row(tx: Tx, caller: Caller, set_id: str) -> AnnotationSetRow:
    row = await annotations.SETS.get(tx, caller.project_id, set_id)
    if row is None:
        raise NotFound("not_found")
    return row


@router.post("", operation_id="create_annotation_set", response_model=AnnotationSet, status_code=201)
async def create_annotation_set(
    body: AnnotationSetRequest, request: Request, caller: RunsWrite, state: State
) -> Response:
    """Fix items and annotators and estimate what asking takes; nobody is asked yet. Takes an ``Idempotency-Key``.

    The set is the next version of its name. 404 ``benchmark_not_found``, ``task_not_found``, ``run_not_found``,
    ``overlay_not_found``; 422 ``no_tasks``, ``too_many_annotations``, ``unknown_model``, ``unknown_effort``, ``unknown_template``.
    """

    async def work(tx: Tx) -> Made:
        row = await draw_up(tx, state.blobs, caller.project_id, body, caller.token.id)
        await audit.record(tx, caller.project_id, caller.token.id, "annotations.create", row.id)
        return Made(await _view(tx, row), 201, f"/v1/annotation-sets/{row.id}")

    return await once(request, state, caller, "POST /v1/annotation-sets", work)


@router.get("", operation_id="list_annotation_sets", response_model=ListOf[AnnotationSetHead], responses=UNCHANGED)
async def list_annotation_sets(
    request: Request, caller: RunsRead, state: State, page: Paging, query: Annotated[SetQuery, Query()]
) -> Response:
    """List annotation sets. Also takes ``label.<name>=<value>``. Sorts: created_at, name."""
    values = {name: getattr(query, name) for name in ("name", "state", "about", "benchmark_id")}
    listed = source(request, annotations.LISTING, caller.project_id, query, page, **values)
    names = chosen(query.fields, AnnotationSetHead)
    return await answer_list(request, state, listed, head_view, names=names, total=query.total)


@router.get("/{annotation_set_id}", operation_id="get_annotation_set", response_model=AnnotationSet)
async def get_annotation_set(annotation_set_id: str, caller: RunsRead, state: State) -> Response:
    """Return a set with its counts, how far its votes agree, and what it has cost so far."""
    async with state.db.snapshot() as tx:
        view = await _view(tx, await _row(tx, caller, annotation_set_id))
    return answer(view)


@router.post("/{annotation_set_id}/start", operation_id="start_annotation_set", response_model=AnnotationSet)
async def start_annotation_set(annotation_set_id: str, body: Start, caller: RunsWrite, state: State) -> Response:
    """Ask for what is missing. May be repeated; also goes on with a set that was stopped or cancelled.

    409 ``annotations_complete``, ``annotations_accepted``; 422 ``no_annotators``.
    """
    async with state.db.transaction() as tx:
        row = await start(tx, caller.project_id, annotation_set_id, retry_failed=body.retry_failed)
        await audit.record(tx, caller.project_id, caller.token.id, "annotations.start", row.id)
        view = await _view(tx, row)
    return answer(view)


@router.post("/{annotation_set_id}/cancel", operation_id="cancel_annotation_set", response_model=AnnotationSet)
async def cancel_annotation_set(annotation_set_id: str, caller: RunsWrite, state: State) -> Response:
    """Ask for nothing more; what was made stays. May be repeated. 409 ``annotations_complete``."""
    async with state.db.transaction() as tx:
        row = await cancel(tx, caller.project_id, annotation_set_id)
        await audit.record(tx, caller.project_id, caller.token.id, "annotations.cancel", row.id)
        view = await _view(tx, row)
    return answer(view)


@router.post("/{annotation_set_id}/accept", operation_id="accept_annotation_set", response_model=AnnotationSet)
async def accept_annotation_set(annotation_set_id: str, caller: RunsWrite, state: State) -> Response:
    """Seal a set: it never changes again, and its values are the facet ``name@version`` of tasks. May be repeated.

    409 ``annotations_incomplete``, ``no_values``.
    """
    async with state.db.transaction() as tx:
        row = await accept(tx, caller.project_id, annotation_set_id, caller.token.id)
        detail = {"overlay": row.overlay, "digest": row.digest}
        await audit.record(tx, caller.project_id, caller.token.id, "annotations.accept", row.id, detail)
        view = await _view(tx, row)
    return answer(view)


@router.get(
    "/{annotation_set_id}/annotations",
    operation_id="list_annotations",
    response_model=ListOf[AnnotationView],
    responses=UNCHANGED,
)
async def list_annotations(
    annotation_set_id: str,
    request: Request,
    caller: RunsRead,
    state: State,
    page: Paging,
    query: Annotated[VoteQuery, Query()],
) -> Response:
    """List a set's votes, models' and people's. Sorts: created_at."""
    async with state.db.reading() as tx:
        await _row(tx, caller, annotation_set_id)
    values = {name: getattr(query, name) for name in ("target", "annotator", "state")}
    listed = source(request, annotations.ROWS, caller.project_id, query, page, set_id=(annotation_set_id,), **values)
    names = chosen(query.fields, AnnotationView)
    return await answer_list(request, state, listed, annotation_view, names=names, total=query.total)


@router.post("/{annotation_set_id}/annotations", operation_id="import_annotations", response_model=BroughtAnnotations)
async def import_annotations(annotation_set_id: str, body: Bring, caller: RunsWrite, state: State) -> Response:
    """Record what people say of items, at most 2 000 in one call; the last word on an item goes before all votes.

    409 ``annotations_accepted``, ``too_many_words``; 422 ``target_not_in_set``, ``bad_value``.
    """
    async with state.db.transaction() as tx:
        new = await bring(tx, caller.project_id, annotation_set_id, body.annotations, caller.token.id)
        detail = {"new": new, "brought": len(body.annotations)}
        await audit.record(tx, caller.project_id, caller.token.id, "annotations.import", annotation_set_id, detail)
    return answer(BroughtAnnotations(new=new, known=len(body.annotations) - new))


@router.get(
    "/{annotation_set_id}/values", operation_id="list_annotation_values", response_model=ListOf[AnnotationValue]
)
async def list_annotation_values(
    annotation_set_id: str,
    request: Request,
    caller: RunsRead,
    state: State,
    page: Paging,
    only: Annotated[Literal["all", "open"], Query()] = "all",
) -> Response:
    """List what a set says of its targets, in their order, once its operation has ended or people's labels have come.

    ``only=open``: those without a value.
    """
    async with state.db.reading() as tx:
        await _row(tx, caller, annotation_set_id)
        found = await annotations.list_values(tx, annotation_set_id, page, open_only=only == "open")
    data = [value_view(row) for row in found.items]
    return answer(ListOf[AnnotationValue](data=data, next=next_link(request, found.next)))
