"""The page of evaluations: how far each is, and the way to its report and its tables."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.dashboard.pages import page, to_login
from service.dashboard.visitor import dashboard_of, visitor_of
from service.domain import cursors
from service.domain.errors import Invalid
from service.domain.evaluations import EvaluationState
from service.store.evaluations import evaluations
from service.store.listing import ListFilter
from service.store.result_tables.reading import QUERIES
from service.store.rows import Page

router = APIRouter(include_in_schema=False)
_LIST = "pages:evaluations"
_UNBEGUN = frozenset({EvaluationState.DRAFT, EvaluationState.CHECKING})


@router.get("/evaluations")
async def evaluation_list(request: Request, cursor: str = "") -> Response:
    """List the newest evaluations."""
    visitor = await visitor_of(request, "runs:read")
    if visitor is None:
        return to_login()
    try:
        position = cursors.decode(cursor, _LIST) if cursor else None
    except Invalid as error:
        return page("problem.html", error.status, title="That link does not work", detail=error.detail)
    async with dashboard_of(request).db.reading() as tx:
        found = await evaluations.LISTING.page(tx, visitor.project_id, ListFilter(), "-created_at", Page(position))
    following = cursors.encode(found.next, _LIST) if found.next else None
    may = visitor.may("reports:read")
    reports = {row.id for row in found.items if may and row.state not in _UNBEGUN}
    return page("evaluations.html", evaluations=found.items, following=following, reports=reports, tables=[*QUERIES])
