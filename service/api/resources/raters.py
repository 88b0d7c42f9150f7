"""``/v1/campaigns/{id}/raters`` and what raters said: invitations, removal, ratings, preferences, export. For the lead."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response, StreamingResponse

from service.api.auth import GradingsRead, GradingsWrite, State
from service.api.campaign_export import exported
from service.api.campaign_view import (
    InvitedRater,
    InvitedRaters,
    Preference,
    Rater,
    Rating,
    RemovedRater,
    preference_view,
    rater_fields,
    rating_view,
)
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.lookups import campaign_or_404
from service.api.operation_view import Operation, operation_view
from service.api.pagination import ListOf, Paging, next_link
from service.api.prefixed import only_known
from service.api.rendering import View, answer
from service.domain.campaigns import CampaignState, Form, RaterSpec
from service.domain.errors import Conflict, Invalid, NotFound
from service.lifecycle.campaigns import rating
from service.lifecycle.operations.model_ratings import KIND
from service.store import audit, operations
from service.store.campaigns import assignments, campaigns, preferences, raters
from service.store.database import Tx
from service.store.rows import Cursor
from service.store.rows_campaigns import RaterRow

router = APIRouter(prefix="/v1/campaigns", tags=["campaigns"], route_class=StrictRoute)
_NO_STORE = {"Cache-Control": "no-store"}
_STATES = ("leased", "submitted", "skipped", "released")


class NewRaters(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    raters: Annotated[list[RaterSpec], Field(min_length=1, max_length=200)]


class HandedBack(View):
    id: str
    """Assignment."""
    state: str


@router.post("/{campaign_id}/raters", operation_id="add_raters", response_model=InvitedRaters, status_code=201)
async def add_raters(campaign_id: str, body: NewRaters, caller: GradingsWrite, state: State) -> Response:
    """Add raters. The codes of invitations are in this answer only; each works once, for 14 days."""
    async with state.db.transaction() as tx:
        row = await campaign_or_404(tx, caller, campaign_id, lock=True)
        if row.state is CampaignState.CLOSED:
            raise Conflict("campaign_closed", "the campaign is closed")
        if row.form is not Form.PAIRWISE and any(r.model for r in body.raters):
            raise Invalid("no_model_raters", "models rate in campaigns of form pairwise only")
        added = await raters.add(tx, row, body.raters)
        await campaigns.touch(tx, row.id)
        detail = {"raters": [r.pseudonym for r, _ in added]}
        await audit.record(tx, caller.project_id, caller.token.id, "campaign.raters", row.id, detail)
    return answer(InvitedRaters(data=[_invited(r, code) for r, code in added]), 201, _NO_STORE)


@router.get("/{campaign_id}/raters", operation_id="list_raters", response_model=ListOf[Rater])
async def list_raters(campaign_id: str, caller: GradingsRead, state: State) -> Response:
    """List all raters (at most 200), the removed ones too."""
    async with state.db.reading() as tx:
        await campaign_or_404(tx, caller, campaign_id)
        found = await raters.of_campaign(tx, campaign_id)
    return answer(ListOf[Rater](data=[Rater(**rater_fields(r)) for r in found], next=None))


@router.post("/{campaign_id}/raters/{rater_id}/invite", operation_id="invite_rater", response_model=InvitedRater)
async def invite_rater(campaign_id: str, rater_id: str, caller: GradingsWrite, state: State) -> Response:
    """Give a rater another code; the former one and every session of the rater end."""
    async with state.db.transaction() as tx:
        row = await campaign_or_404(tx, caller, campaign_id, lock=True)
        rater = await raters.get(tx, campaign_id, rater_id)
        if rater is None:
            raise NotFound("not_found")
        rater, code = await raters.invite(tx, rater)
        await campaigns.touch(tx, row.id)
        detail = {"rater": rater.pseudonym}
        await audit.record(tx, caller.project_id, caller.token.id, "campaign.invite", row.id, detail)
    return answer(_invited(rater, code), headers=_NO_STORE)


@router.delete("/{campaign_id}/raters/{rater_id}", operation_id="remove_rater", response_model=RemovedRater)
async def remove_rater(campaign_id: str, rater_id: str, caller: GradingsWrite, state: State) -> Response:
    """End a rater's part: sessions end, what was in hand goes to others, ratings stay and are marked."""
    async with state.db.transaction() as tx:
        row = await campaign_or_404(tx, caller, campaign_id, lock=True)
        rater, handed = await rating.remove_rater(tx, row, rater_id)
        detail = {"rater": rater.pseudonym, "handed_back": handed}
        await audit.record(tx, caller.project_id, caller.token.id, "campaign.remove_rater", row.id, detail)
    return answer(RemovedRater(**rater_fields(rater), handed_back=handed))


@router.post(
    "/{campaign_id}/assignments/{assignment_id}/hand-back", operation_id="hand_back_item", response_model=HandedBack
)
async def hand_back_item(campaign_id: str, assignment_id: str, caller: GradingsWrite, state: State) -> Response:
    """Take an item from the rater who has it in hand, so that another one may have it."""
    async with state.db.transaction() as tx:
        row = await campaign_or_404(tx, caller, campaign_id, lock=True)
        done = await rating.hand_back(tx, row, assignment_id)
        detail = {"assignment": assignment_id}
        await audit.record(tx, caller.project_id, caller.token.id, "campaign.hand_back", row.id, detail)
    return answer(HandedBack(id=done.id, state=done.state))


@router.post("/{campaign_id}/ask-models", operation_id="ask_model_raters", response_model=Operation, status_code=202)
async def ask_model_raters(campaign_id: str, request: Request, caller: GradingsWrite, state: State) -> Response:
    """Let the models among the raters rate what there is for them; answers with the operation. Takes an
    ``Idempotency-Key``."""

    async def work(tx: Tx) -> Made:
        row = await campaign_or_404(tx, caller, campaign_id)
        campaigns.check_open(row)
        made = await operations.create(tx, caller.project_id, KIND, {"campaign_id": row.id}, unit="ratings")
        detail = {"operation": made.id}
        await audit.record(tx, caller.project_id, caller.token.id, "campaign.ask_models", row.id, detail)
        return Made(operation_view(made), 202, f"/v1/operations/{made.id}")

    return await once(request, state, caller, f"POST /v1/campaigns/{campaign_id}/ask-models", work)


@router.get("/{campaign_id}/ratings", operation_id="list_ratings", response_model=ListOf[Rating])
async def list_ratings(
    campaign_id: str,
    request: Request,
    caller: GradingsRead,
    state: State,
    page: Paging,
    states: Annotated[list[Literal["leased", "submitted", "skipped", "released"]] | None, Query(alias="state")] = None,
) -> Response:
    """List assignments with their ratings; ``state`` chooses."""
    only_known(request, ("limit", "cursor", "state"), ())
    async with state.db.reading() as tx:
        await campaign_or_404(tx, caller, campaign_id)
        found = await assignments.page(tx, campaign_id, _after(page.cursor), page.limit, states or _STATES)
    data = [rating_view(*parts) for parts in found.items]
    return answer(ListOf[Rating](data=data, next=next_link(request, found.next)))


@router.get("/{campaign_id}/preferences", operation_id="list_preferences", response_model=ListOf[Preference])
async def list_preferences(
    campaign_id: str, request: Request, caller: GradingsRead, state: State, page: Paging
) -> Response:
    """List what decided pairs give their first deliverable."""
    only_known(request, ("limit", "cursor"), ())
    async with state.db.reading() as tx:
        await campaign_or_404(tx, caller, campaign_id)
        found = await preferences.page(tx, campaign_id, _after(page.cursor), page.limit)
    data = [preference_view(row) for row in found.items]
    return answer(ListOf[Preference](data=data, next=next_link(request, found.next)))


@router.get("/{campaign_id}/export", operation_id="export_campaign", response_class=Response)
async def export_campaign(
    campaign_id: str,
    caller: GradingsRead,
    state: State,
    table: Literal["ratings", "preferences"] = "ratings",
    format: Literal["jsonl", "csv"] = "jsonl",
) -> Response:
    """Return all submitted ratings, or all preferences, as JSON lines or CSV. Raters are pseudonyms."""
    async with state.db.reading() as tx:
        await campaign_or_404(tx, caller, campaign_id)
    media = "text/csv; charset=utf-8" if format == "csv" else "application/jsonl"
    name = f'attachment; filename="{campaign_id}-{table}.{format}"'
    headers = {"Content-Disposition": name, "X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-store"}
    return StreamingResponse(exported(state.db, campaign_id, table, format), 200, headers, media)


def _invited(row: RaterRow, code: str | None) -> InvitedRater:
    return InvitedRater(**rater_fields(row), code=code, link=f"/rate#{code}" if code else None)


def _after(cursor: Cursor | None) -> str | None:
    return None if cursor is None else cursor[0]
