"""``/v1/campaigns``: what people rate, how far they are, and what they said (NEEDS A13). For the lead."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import Caller, GradingsRead, GradingsWrite, State
from service.api.campaign_view import (
    Campaign,
    CampaignDetail,
    Item,
    Scanned,
    campaign_fields,
    campaign_view,
    item_view,
    progress_view,
)
from service.api.conditional import none_match, revision_tag
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.lookups import campaign_or_404
from service.api.pagination import ListOf, Paging, next_link
from service.api.prefixed import only_known
from service.api.rendering import answer
from service.domain.campaigns import CampaignSpec
from service.domain.errors import Invalid
from service.domain.tasks import LABELS, Name
from service.lifecycle.campaigns import deciding, scanning
from service.lifecycle.campaigns.figures import figures
from service.lifecycle.campaigns.making import make
from service.store import audit
from service.store.campaigns import campaigns, items
from service.store.database import Tx
from service.store.rows import Cursor
from service.store.rows_campaigns import CampaignRow

router = APIRouter(prefix="/v1/campaigns", tags=["campaigns"], route_class=StrictRoute)
_FILTERS = ("state", "form", "name")


class CampaignQuery(ListQuery):
    state: Values = ()
    form: Values = ()
    name: Values = ()


class CampaignChange(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    name: Name = ""
    instruction: Annotated[str, Field(min_length=1, max_length=100_000)] = "-"
    """Another text is a new version; ratings keep the one that was shown."""
    due_at: AwareDatetime | None = None
    labels: LABELS = Field(default_factory=dict[str, str])


@router.post("", operation_id="create_campaign", response_model=Campaign, status_code=201)
async def create_campaign(body: CampaignSpec, request: Request, caller: GradingsWrite, state: State) -> Response:
    """Make a draft; its items are drawn now and stay. Takes an ``Idempotency-Key``."""
    await asyncio.to_thread(state.blobs.store_bytes, body.instruction.encode())

    async def work(tx: Tx) -> Made:
        row = await make(tx, caller.project_id, body, caller.token.id)
        await _record(tx, caller, "campaign.create", row, {"name": row.name, "items": row.items})
        return Made(campaign_view(row), 201, f"/v1/campaigns/{row.id}")

    return await once(request, state, caller, "POST /v1/campaigns", work)


@router.get("", operation_id="list_campaigns", response_model=ListOf[Campaign], responses=UNCHANGED)
async def list_campaigns(
    request: Request, caller: GradingsRead, state: State, page: Paging, query: Annotated[CampaignQuery, Query()]
) -> Response:
    """List campaigns. Sorts: created_at."""
    values = {name: getattr(query, name) for name in _FILTERS}
    listed = source(request, campaigns.LISTING, caller.project_id, query, page, **values)
    names = chosen(query.fields, Campaign)
    return await answer_list(request, state, listed, campaign_view, names=names, total=query.total)


@router.get("/{campaign_id}", operation_id="get_campaign", response_model=CampaignDetail, responses=UNCHANGED)
async def get_campaign(campaign_id: str, request: Request, caller: GradingsRead, state: State) -> Response:
    """Return the campaign with the lead's figures: progress, agreement, seconds."""
    async with state.db.snapshot() as tx:
        row = await campaign_or_404(tx, caller, campaign_id)
        tag = revision_tag(row.revision)
        if none_match(request.headers.get("if-none-match"), tag):
            return Response(status_code=304, headers={"ETag": tag})
        found = await figures(tx, row)
    return answer(CampaignDetail(**campaign_fields(row), progress=progress_view(found)), headers={"ETag": tag})


@router.patch("/{campaign_id}", operation_id="change_campaign", response_model=Campaign)
async def change_campaign(campaign_id: str, body: CampaignChange, caller: GradingsWrite, state: State) -> Response:
    """Change name, instruction, due date or labels."""
    changes = body.model_dump(exclude_unset=True)
    instruction = changes.pop("instruction", None)
    if changes.get("name") == "":
        raise Invalid("bad_name", "a name has at least one character")
    if instruction is not None:
        await asyncio.to_thread(state.blobs.store_bytes, instruction.encode())
    async with state.db.transaction() as tx:
        row = await campaign_or_404(tx, caller, campaign_id, lock=True)
        if instruction is not None:
            row = await campaigns.instruct(tx, row, instruction)
        if changes:
            row = await campaigns.touch(tx, row.id, **changes)
        await _record(tx, caller, "campaign.change", row, {"fields": sorted(body.model_fields_set)})
    return answer(campaign_view(row))


@router.post("/{campaign_id}/open", operation_id="open_campaign", response_model=Campaign)
async def open_campaign(campaign_id: str, caller: GradingsWrite, state: State) -> Response:
    """Let raters begin. Evidence documents are asked for; what delivered nothing is decided by rule."""
    async with state.db.transaction() as tx:
        before = await campaign_or_404(tx, caller, campaign_id, lock=True)
        row = await campaigns.open_(tx, before)
        if row.revision != before.revision:
            await deciding.settle_by_rule(tx, row)
            await _record(tx, caller, "campaign.open", row, {})
        row = await campaign_or_404(tx, caller, campaign_id)
    async with state.db.transaction() as tx:  # apart: it may take a while, and asking again changes nothing
        await scanning.ask_for_documents(tx, row)
    return answer(campaign_view(row))


@router.post("/{campaign_id}/close", operation_id="close_campaign", response_model=Campaign)
async def close_campaign(campaign_id: str, caller: GradingsWrite, state: State) -> Response:
    """End the rating; items that are not decided stay so."""
    async with state.db.transaction() as tx:
        before = await campaign_or_404(tx, caller, campaign_id, lock=True)
        row = await campaigns.close(tx, before)
        if row.revision != before.revision:
            await _record(tx, caller, "campaign.close", row, {})
    return answer(campaign_view(row))


@router.post("/{campaign_id}/scan", operation_id="scan_campaign", response_model=Scanned)
async def scan_campaign(campaign_id: str, caller: GradingsWrite, state: State) -> Response:
    """Look for names of agents, models, providers and scaffolds in what raters see, in up to 20 items that are left."""
    async with state.db.transaction() as tx:
        row = await campaign_or_404(tx, caller, campaign_id)
        looked = await scanning.scan(tx, state.blobs, row)
        found = await items.all_of(tx, row.id)
    left = sum(i.identifying is None for i in found)
    return answer(Scanned(looked_at=looked, left=left, identifying=sum(bool(i.identifying) for i in found)))


@router.get("/{campaign_id}/items", operation_id="list_campaign_items", response_model=ListOf[Item])
async def list_campaign_items(
    campaign_id: str, request: Request, caller: GradingsRead, state: State, page: Paging
) -> Response:
    """List the items in their order, gold ones at the end."""
    only_known(request, ("limit", "cursor"), ())
    async with state.db.reading() as tx:
        await campaign_or_404(tx, caller, campaign_id)
        found = await items.page(tx, campaign_id, _position(page.cursor), page.limit)
    return answer(ListOf[Item](data=[item_view(i) for i in found.items], next=next_link(request, found.next)))


async def _record(tx: Tx, caller: Caller, action: str, row: CampaignRow, detail: dict[str, Any]) -> None:
    await audit.record(tx, caller.project_id, caller.token.id, action, row.id, detail)


def _position(cursor: Cursor | None) -> int:
    if cursor is None:
        return 0
    if not (cursor[0].isascii() and cursor[0].isdecimal() and len(cursor[0]) < 10):
        raise Invalid("bad_cursor", "the cursor is not one of this list")
    return int(cursor[0])
