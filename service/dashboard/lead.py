"""The pages of who leads campaigns, and the page of one judge's probe."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.dashboard.pages import page, to_login
from service.dashboard.visitor import dashboard_of, visitor_of
from service.domain import cursors
from service.domain.campaigns import CampaignState
from service.domain.errors import Invalid
from service.lifecycle.campaigns.figures import figures
from service.store import probes
from service.store.campaigns import assignments, campaigns, items
from service.store.listing import ListFilter
from service.store.rows import Page

router = APIRouter(include_in_schema=False)
READ, WRITE = "gradings:read", "gradings:write"
SHOWN_ITEMS = 200
SHOWN_IN_HAND = 200
_LIST = "pages:campaigns"


@router.get("/campaigns")
async def campaign_list(request: Request, cursor: str = "") -> Response:
    """List the newest campaigns."""
    visitor = await visitor_of(request, READ)
    if visitor is None:
        return to_login()
    try:
        position = cursors.decode(cursor, _LIST) if cursor else None
    except Invalid as error:
        return page("problem.html", error.status, title="That link does not work", detail=error.detail)
    async with dashboard_of(request).db.reading() as tx:
        found = await campaigns.LISTING.page(tx, visitor.project_id, ListFilter(), "-created_at", Page(position))
    following = cursors.encode(found.next, _LIST) if found.next else None
    return page("campaigns.html", campaigns=found.items, following=following)


@router.get("/campaigns/{campaign_id}")
async def campaign_page(request: Request, campaign_id: str) -> Response:
    """Show how far a campaign is, how well its raters agree, how long they take, and what tells them too much."""
    visitor = await visitor_of(request, READ)
    if visitor is None:
        return to_login()
    async with dashboard_of(request).db.reading() as tx:
        row = await campaigns.get(tx, visitor.project_id, campaign_id)
        if row is None:
            return page("problem.html", 404, title="No such campaign", detail="It may have been deleted.")
        shown = await items.page(tx, row.id, 0, SHOWN_ITEMS)
        values: dict[str, Any] = {
            "figures": await figures(tx, row),
            "in_hand": (await assignments.page(tx, row.id, None, SHOWN_IN_HAND, ("leased",))).items,
            "items": shown.items,
            "more_items": shown.next is not None,
        }
    may = visitor.may(WRITE) and row.state is not CampaignState.CLOSED
    return page("campaign.html", campaign=row, may_lead=may, **values)


@router.get("/probes/{probe_id}")
async def probe_page(request: Request, probe_id: str) -> Response:
    """Show what was found out of a judge, on one page that prints."""
    visitor = await visitor_of(request, READ)
    if visitor is None:
        return to_login()
    async with dashboard_of(request).db.reading() as tx:
        row = await probes.get(tx, visitor.project_id, probe_id)
    if row is None:
        return page("problem.html", 404, title="No such probe", detail="It may have been deleted.")
    return page("probe.html", probe=row, report=row.report)
