"""``/v1/rate``: what raters do. Every id here is an assignment's; whose work it is can be found out from none of it."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import State, check_origin
from service.api.charging import check_failures, note_failure
from service.api.cookies import clear_rater, rater_secret, set_rater
from service.api.downloads import download_headers, file_answer, safe_type
from service.api.json_body import StrictRoute
from service.api.rating_auth import Rater, campaign_of
from service.api.rating_view import (
    Assignment,
    Kept,
    RatingSession,
    TrialProgress,
    assignment_view,
    kept_view,
)
from service.api.rendering import answer
from service.api.state import ApiState
from service.domain.errors import NotFound, Unauthenticated
from service.domain.ratings import Purpose, Reason
from service.lifecycle.campaigns import rating, scanning
from service.lifecycle.campaigns.rating import Who
from service.lifecycle.campaigns.showing import Shown, show
from service.store.campaigns import assignments, campaigns, names, raters
from service.store.database import Tx
from service.store.rows_campaigns import AssignmentRow, CampaignRow, RaterRow

router = APIRouter(tags=["rating"], route_class=StrictRoute)
_NO_STORE = {"Cache-Control": "private, no-store"}
CampaignId = Annotated[str | None, Query(max_length=64)]
"""Programs name the campaign; people have one."""
Seconds = Annotated[float, Field(ge=0, le=7 * 86_400)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Invitation(_Body):
    code: Annotated[str, Field(min_length=1, max_length=200)]
    """What follows ``#`` in the link."""


class Beat(_Body):
    active_s: Seconds
    """Seconds of work on the item so far, as the client counted them; at most what has passed is believed."""


class Submission(_Body):
    client_id: Annotated[str, Field(min_length=1, max_length=100)]
    """Made by the client once for this rating, so that it can be sent again."""
    rating: dict[str, Any]
    """Form human_panel: rating, failed_early, reason, tags, notes. Form pairwise: completion, quality (a | same | b),
    notes."""
    active_s: Seconds = 0.0


class Skip(_Body):
    reason: Annotated[Reason, Field(min_length=1)]


@router.post("/rate/session", operation_id="join_campaign", status_code=204)
async def join_campaign(body: Invitation, request: Request, state: State) -> Response:
    """Turn an invitation into a session of this browser: 12 hours, one campaign. The code works once."""
    check_origin(request, state)
    check_failures(request, state, b"")
    async with state.db.transaction() as tx:
        found = await raters.exchange(tx, body.code)
    if found is None:
        note_failure(request, state)
        raise Unauthenticated("bad_invitation", "the invitation is unknown, used or over: ask for another one")
    response = Response(status_code=204)
    set_rater(response, state.config, found[1])
    response.headers["Cache-Control"] = "no-store"
    return response


@router.delete("/rate/session", operation_id="leave_campaign", status_code=204)
async def leave_campaign(request: Request, state: State) -> Response:
    """End the session of this browser."""
    check_origin(request, state)
    secret = rater_secret(request)
    if secret is not None:
        async with state.db.transaction() as tx:
            await raters.close_session(tx, secret)
    response = Response(status_code=204)
    clear_rater(response, state.config)
    return response


@router.get("/v1/rate", operation_id="get_rating_session", response_model=RatingSession)
async def get_rating_session(who: Rater, state: State, campaign_id: CampaignId = None) -> Response:
    """Return the campaign's instruction and how far this rater is."""
    async with state.db.reading() as tx:
        campaign, rater = await _place(tx, who, campaign_of(who, campaign_id))
        mine = [a for a in await assignments.of_rater_all(tx, rater.id) if a.purpose is not Purpose.GOLD]
        held = await assignments.held(tx, rater.id)
        trial = await _trial(tx, campaign, rater)
    shown = RatingSession(
        campaign=campaign.name,
        form=campaign.form,
        state=campaign.state,
        pseudonym=rater.pseudonym,
        instruction=campaign.instruction,
        instruction_version=campaign.instruction_version,
        soft_limit_s=campaign.spec.soft_s,
        due_at=campaign.due_at,
        in_hand=held.id if held else None,
        submitted=sum(a.state == "submitted" for a in mine),
        skipped=sum(a.state == "skipped" for a in mine),
        trial=trial,
    )
    return answer(shown, headers=_NO_STORE)


@router.post("/v1/rate/next", operation_id="take_next_item", response_model=Assignment, responses={204: {}})
async def take_next_item(who: Rater, state: State, campaign_id: CampaignId = None) -> Response:
    """Take the next item, or get the one in hand again. 204: there is nothing (now); 403 ``not_qualified``."""
    async with state.db.transaction() as tx:
        found = await rating.next_assignment(tx, who, campaign_of(who, campaign_id))
    if found is None:
        return Response(status_code=204, headers=_NO_STORE)
    async with state.db.reading() as tx:
        shown = await _shown(tx, state, who, found)
    if shown.item.identifying is None:
        await _warn(state, shown)
    return answer(assignment_view(shown), headers=_NO_STORE)


@router.get("/v1/rate/{assignment_id}", operation_id="get_rated_item", response_model=Assignment)
async def get_rated_item(assignment_id: str, who: Rater, state: State) -> Response:
    async with state.db.reading() as tx:
        shown = await _shown(tx, state, who, await _mine(tx, who, assignment_id))
    return answer(assignment_view(shown), headers=_NO_STORE)


@router.post("/v1/rate/{assignment_id}/beat", operation_id="keep_item", response_model=Kept)
async def keep_item(assignment_id: str, body: Beat, who: Rater, state: State) -> Response:
    """Keep the item in hand and say how long it was worked on. 409 ``assignment_over`` once others have it."""
    async with state.db.transaction() as tx:
        return answer(kept_view(await rating.beat(tx, who, assignment_id, body.active_s)))


@router.post("/v1/rate/{assignment_id}/submit", operation_id="submit_rating", response_model=Kept)
async def submit_rating(assignment_id: str, body: Submission, who: Rater, state: State) -> Response:
    """Rate the item. The same rating again gets the same answer; another one 409 ``already_submitted``."""
    async with state.db.transaction() as tx:
        done = await rating.submit(tx, who, assignment_id, body.rating, body.client_id, body.active_s)
    return answer(kept_view(done))


@router.post("/v1/rate/{assignment_id}/skip", operation_id="skip_item", response_model=Kept)
async def skip_item(assignment_id: str, body: Skip, who: Rater, state: State) -> Response:
    """Leave the item to others for good."""
    async with state.db.transaction() as tx:
        return answer(kept_view(await rating.skip(tx, who, assignment_id, body.reason)))


@router.post("/v1/rate/{assignment_id}/release", operation_id="release_item", response_model=Kept)
async def release_item(assignment_id: str, who: Rater, state: State) -> Response:
    """Give the item back for now."""
    async with state.db.transaction() as tx:
        return answer(kept_view(await rating.release(tx, who, assignment_id)))


@router.head("/v1/rate/{assignment_id}/files/{n}", include_in_schema=False)
@router.get("/v1/rate/{assignment_id}/files/{n}", operation_id="get_rated_file", response_class=Response)
async def get_rated_file(assignment_id: str, n: int, request: Request, who: Rater, state: State) -> Response:
    """Download a file of the item: always an attachment, by a name that tells nothing. Range works."""
    async with state.db.reading() as tx:
        shown = await _shown(tx, state, who, await _mine(tx, who, assignment_id), documents=False)
    files = shown.files
    if not 0 <= n < len(files):
        raise NotFound("not_found")
    file = files[n]
    headers = download_headers(file.name.rpartition("/")[2], f'"{file.sha256}"')
    return file_answer(request, state.blobs.open(file.sha256), file.size_bytes, safe_type(file.mime), headers)


@router.head("/v1/rate/{assignment_id}/images/{n}", include_in_schema=False)
@router.get("/v1/rate/{assignment_id}/images/{n}", operation_id="get_rated_image", response_class=Response)
async def get_rated_image(assignment_id: str, n: int, request: Request, who: Rater, state: State) -> Response:
    """Return a picture of a page, a frame or a figure, drawn anew by us."""
    async with state.db.reading() as tx:
        shown = await _shown(tx, state, who, await _mine(tx, who, assignment_id))
    if not 0 <= n < len(shown.images):
        raise NotFound("not_found")
    image = shown.images[n].image
    headers = download_headers(f"{n}.{image.media_type.rpartition('/')[2]}", f'"{image.sha256}"')
    return file_answer(request, state.blobs.open(image.sha256), image.size_bytes, image.media_type, headers)


async def _place(tx: Tx, who: Who, campaign_id: str) -> tuple[CampaignRow, RaterRow]:
    campaign = await campaigns.get(tx, who.project_id, campaign_id)
    if who.rater_id is not None:
        rater = await raters.get(tx, campaign_id, who.rater_id)
    else:
        rater = await raters.of_token(tx, who.token_id or "", campaign_id)
    if campaign is None or rater is None:
        raise NotFound("not_found")
    return campaign, rater


async def _mine(tx: Tx, who: Who, assignment_id: str) -> AssignmentRow:
    found = await assignments.of_rater(tx, assignment_id, who.rater_id, who.token_id)
    if found is None or found.project_id != who.project_id or found.state not in ("leased", "submitted"):
        raise NotFound("not_found")
    return found


async def _shown(tx: Tx, state: ApiState, who: Who, found: AssignmentRow, *, documents: bool = True) -> Shown:
    campaign, rater = await _place(tx, who, found.campaign_id)
    return await show(tx, state.blobs, campaign, rater, found, documents=documents)


async def _warn(state: ApiState, shown: Shown) -> None:
    """Warn the lead of what a rater is about to read, where nobody has looked yet."""
    async with state.db.transaction() as tx:
        known = await names.of_project(tx, shown.campaign.project_id)
        await scanning.scan_item(tx, state.blobs, shown.item, known)


async def _trial(tx: Tx, campaign: CampaignRow, rater: RaterRow) -> TrialProgress | None:
    spec = campaign.spec.qualification
    if spec is None:
        return None
    done = len(await assignments.golds_of(tx, rater.id))
    return TrialProgress(needed=len(spec.golds), done=done, passed=rater.qualified)
