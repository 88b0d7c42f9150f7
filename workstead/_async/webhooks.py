"""Webhooks: who is told of what. Receivers check what arrives with ``workstead.webhooks.verify``."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models import Delivery, Webhook


class AsyncWebhooks:
    """``/v1/webhooks``; needs the scope ``admin``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(
        self, url: str, events: Sequence[str], *, labels: Mapping[str, str] | None = None, note: str = ""
    ) -> Webhook:
        """Make a webhook; its ``secret`` is in this answer only. Never repeated by itself: each call makes one.

        ``events``: run.running, run.awaiting_confirmation, run.held, run.done, grading.done, operation.done,
        evaluation.held, evaluation.budget, or ``*``. Raises Invalid, Problem.
        """
        body = {"url": url, "events": list(events), "labels": dict(labels or {}), "note": note}
        return Webhook.model_validate(await self._http.json("POST", "/v1/webhooks", json=body))

    async def get(self, webhook_id: str) -> Webhook:
        return Webhook.model_validate(await self._http.json("GET", _path(webhook_id)))

    async def list(self, *, limit: int | None = None) -> AsyncIterator[Webhook]:
        async for item in pages(self._http, "/v1/webhooks", {}, limit):
            yield Webhook.model_validate(item)

    async def change(self, webhook_id: str, **changes: Any) -> Webhook:
        """Set ``url``, ``events``, ``labels``, ``note`` or ``enabled``; what is left out stays."""
        return Webhook.model_validate(await self._http.json("PATCH", _path(webhook_id), json=changes))

    async def delete(self, webhook_id: str) -> None:
        await self._http.request("DELETE", _path(webhook_id))

    async def rotate(self, webhook_id: str) -> Webhook:
        """Give it a new ``secret`` (in this answer only); for 24 hours deliveries are signed with the old one too."""
        return Webhook.model_validate(await self._http.json("POST", _path(webhook_id, "rotate")))

    async def test(self, webhook_id: str) -> Delivery:
        """Queue a delivery of type ``webhook.test``. Raises Conflict (``webhook_disabled``)."""
        return Delivery.model_validate(await self._http.json("POST", _path(webhook_id, "test")))

    async def deliveries(
        self, webhook_id: str, *, state: str | None = None, limit: int | None = None
    ) -> AsyncIterator[Delivery]:
        """Yield what waits and what ended lately, newest first; ``state``: pending, delivered, dead."""
        query = {} if state is None else {"state": state}
        async for item in pages(self._http, _path(webhook_id, "deliveries"), query, limit):
            yield Delivery.model_validate(item)

    async def redeliver(self, webhook_id: str, delivery_id: str) -> Delivery:
        """Send a delivery again, with its id and body. Raises NotFound, Conflict (``webhook_disabled``)."""
        path = _path(webhook_id, "deliveries", delivery_id, "redeliver")
        return Delivery.model_validate(await self._http.json("POST", path))


def _path(webhook_id: str, *rest: str) -> str:
    return "/".join(["/v1/webhooks", *(quote(part, safe="") for part in (webhook_id, *rest))])
