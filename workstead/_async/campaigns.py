"""Campaigns of raters, for their lead; and rating by a program that is one of the raters."""

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workstead._async.files import download
from workstead._async.http import AsyncTransport
from workstead._async.pages import items_of, pages
from workstead.models import Operation
from workstead.models_campaigns import Campaign, CampaignItem, CampaignRater, Preference, RatedItem, Rating


class AsyncCampaigns:
    """``/v1/campaigns``; needs ``gradings:write``, to look ``gradings:read``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(self, spec: Mapping[str, Any], *, idempotency_key: str | None = None) -> Campaign:
        """Make a draft; ``spec``: name, form, instruction, selection, pairs … Raises Invalid (``no_items``)."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return Campaign.model_validate(await self._http.json("POST", "/v1/campaigns", json=dict(spec), headers=headers))

    async def get(self, campaign_id: str) -> Campaign:
        """Return the campaign with ``progress``."""
        return Campaign.model_validate(await self._http.json("GET", _path(campaign_id)))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Campaign]:
        """Yield campaigns; ``filters``: state, form, name, label.KEY, sort, …"""
        async for item in pages(self._http, "/v1/campaigns", filters or {}, limit):
            yield Campaign.model_validate(item)

    async def change(self, campaign_id: str, **changes: Any) -> Campaign:
        """Set ``name``, ``instruction``, ``due_at`` or ``labels``; what is left out stays."""
        return Campaign.model_validate(await self._http.json("PATCH", _path(campaign_id), json=changes))

    async def open(self, campaign_id: str) -> Campaign:
        """Let raters begin. Raises Conflict (``campaign_closed``)."""
        return Campaign.model_validate(await self._http.json("POST", _path(campaign_id, "open")))

    async def close(self, campaign_id: str) -> Campaign:
        return Campaign.model_validate(await self._http.json("POST", _path(campaign_id, "close")))

    async def scan(self, campaign_id: str) -> dict[str, int]:
        """Look for names of agents in what raters see; return ``looked_at``, ``left`` and ``identifying``."""
        return dict(await self._http.json("POST", _path(campaign_id, "scan")))

    async def items(self, campaign_id: str, *, limit: int | None = None) -> AsyncIterator[CampaignItem]:
        async for item in pages(self._http, _path(campaign_id, "items"), {}, limit):
            yield CampaignItem.model_validate(item)

    async def add_raters(self, campaign_id: str, raters: Sequence[Mapping[str, Any]]) -> Sequence[CampaignRater]:
        """Add raters ({name, categories, token_id}); people's codes are in this answer only. Never repeated by itself."""
        path = _path(campaign_id, "raters")
        body = await self._http.json("POST", path, json={"raters": [dict(r) for r in raters]})
        return [CampaignRater.model_validate(r) for r in items_of(body, path)]

    async def raters(self, campaign_id: str) -> Sequence[CampaignRater]:
        path = _path(campaign_id, "raters")
        return [CampaignRater.model_validate(r) for r in items_of(await self._http.json("GET", path), path)]

    async def invite(self, campaign_id: str, rater_id: str) -> CampaignRater:
        """Give a rater another code; the former one and its sessions end."""
        return CampaignRater.model_validate(
            await self._http.json("POST", _path(campaign_id, "raters", rater_id, "invite"))
        )

    async def remove_rater(self, campaign_id: str, rater_id: str) -> CampaignRater:
        """End a rater's part; what was in hand goes to others (``handed_back``)."""
        return CampaignRater.model_validate(await self._http.json("DELETE", _path(campaign_id, "raters", rater_id)))

    async def hand_back(self, campaign_id: str, assignment_id: str) -> None:
        """Take an item from the rater who has it in hand. Raises NotFound, Conflict (``assignment_over``)."""
        await self._http.json("POST", _path(campaign_id, "assignments", assignment_id, "hand-back"))

    async def ask_models(self, campaign_id: str, *, idempotency_key: str | None = None) -> Operation:
        """Let the models among the raters rate; wait with ``client.operations.wait``. Raises Conflict."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        answer = await self._http.json("POST", _path(campaign_id, "ask-models"), headers=headers)
        return Operation.model_validate(answer)

    async def ratings(
        self, campaign_id: str, *, state: str | None = None, limit: int | None = None
    ) -> AsyncIterator[Rating]:
        """Yield assignments with their ratings; ``state``: leased, submitted, skipped, released."""
        query = {} if state is None else {"state": state}
        async for item in pages(self._http, _path(campaign_id, "ratings"), query, limit):
            yield Rating.model_validate(item)

    async def preferences(self, campaign_id: str, *, limit: int | None = None) -> AsyncIterator[Preference]:
        """Yield what decided pairs give their first deliverable."""
        async for item in pages(self._http, _path(campaign_id, "preferences"), {}, limit):
            yield Preference.model_validate(item)

    async def export(self, campaign_id: str, target: Path, *, table: str = "ratings", format: str = "jsonl") -> int:
        """Write all ratings, or ``preferences``, to a file (``jsonl`` or ``csv``); return its bytes."""
        return await download(self._http, f"{_path(campaign_id, 'export')}?table={table}&format={format}", target)


class AsyncRating:
    """``/v1/rate``: rating by a program whose token (scope ``rate``) is a rater of the campaign."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def session(self, campaign_id: str) -> dict[str, Any]:
        """Return the instruction and how far this rater is."""
        return dict(await self._http.json("GET", "/v1/rate", params={"campaign_id": campaign_id}))

    async def next(self, campaign_id: str) -> RatedItem | None:
        """Take the next item, or get the one in hand again; None: there is nothing (now)."""
        answer = await self._http.request("POST", "/v1/rate/next", params={"campaign_id": campaign_id})
        return None if answer.status_code == 204 else RatedItem.model_validate(answer.json())

    async def get(self, assignment_id: str) -> RatedItem:
        return RatedItem.model_validate(await self._http.json("GET", _rate(assignment_id)))

    async def beat(self, assignment_id: str, active_s: float) -> RatedItem:
        """Keep the item in hand. Raises Conflict (``assignment_over``)."""
        return RatedItem.model_validate(
            await self._http.json("POST", _rate(assignment_id, "beat"), json={"active_s": active_s})
        )

    async def submit(
        self, assignment_id: str, rating: Mapping[str, Any], *, client_id: str, active_s: float = 0.0
    ) -> RatedItem:
        """Rate the item; the same again is harmless. Raises Invalid, Conflict (``already_submitted``)."""
        body = {"client_id": client_id, "rating": dict(rating), "active_s": active_s}
        headers = {"Idempotency-Key": client_id}
        answer = await self._http.json("POST", _rate(assignment_id, "submit"), json=body, headers=headers)
        return RatedItem.model_validate(answer)

    async def skip(self, assignment_id: str, reason: str) -> RatedItem:
        body = {"reason": reason}
        return RatedItem.model_validate(await self._http.json("POST", _rate(assignment_id, "skip"), json=body))

    async def release(self, assignment_id: str) -> RatedItem:
        return RatedItem.model_validate(await self._http.json("POST", _rate(assignment_id, "release")))

    async def file(self, assignment_id: str, n: int, target: Path) -> int:
        """Write file ``n`` of the item to ``target``; return its bytes."""
        return await download(self._http, _rate(assignment_id, "files", str(n)), target)

    async def image(self, assignment_id: str, n: int, target: Path) -> int:
        """Write picture ``n`` of the item to ``target``; return its bytes."""
        return await download(self._http, _rate(assignment_id, "images", str(n)), target)


def _path(campaign_id: str, *rest: str) -> str:
    return "/".join(["/v1/campaigns", *(quote(part, safe="") for part in (campaign_id, *rest))])


def _rate(assignment_id: str, *rest: str) -> str:
    return "/".join(["/v1/rate", *(quote(part, safe="") for part in (assignment_id, *rest))])
