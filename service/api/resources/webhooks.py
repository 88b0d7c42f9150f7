"""``/v1/webhooks``: who is told of what; what was sent, and what came of it (Standard Webhooks)."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import Admin, Caller, State
from service.api.json_body import StrictRoute
from service.api.pagination import ListOf, Paging, next_link
from service.api.prefixed import only_known
from service.api.rendering import Timestamp, View, answer
from service.api.state import ApiState
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.public_urls import MAX_URL, parse_public_url
from service.domain.tasks import LABELS
from service.domain.webhooks import SUBSCRIBABLE, DeliveryState
from service.store import audit, deliveries, webhooks
from service.store.database import Tx
from service.store.rows_feeds import DeliveryRow, WebhookRow

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=StrictRoute)
Events = Annotated[list[str], Field(min_length=1, max_length=32)]
Url = Annotated[str, Field(min_length=1, max_length=MAX_URL)]
Note = Annotated[str, Field(max_length=200)]


class NewWebhook(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    url: Url
    """https, on a public address."""
    events: Events
    """run.running | run.awaiting_confirmation | run.held | run.done | grading.done | operation.done | *"""
    labels: LABELS = Field(default_factory=dict[str, str])
    """Only what has all of these labels."""
    note: Note = ""


class WebhookChange(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    url: Url = ""
    events: Events = Field(default_factory=list[str])
    labels: LABELS = Field(default_factory=dict[str, str])
    note: Note = ""
    enabled: bool = True
    """True also forgets earlier failures and tries at once what waits."""


class Webhook(View):
    id: str
    url: str
    events: list[str]
    labels: dict[str, str]
    note: str
    enabled: bool
    """False: nothing is queued and nothing sent. So ends what fails too often in a row."""
    failures: int
    """In a row, over all its deliveries."""
    created_at: Timestamp
    disabled_at: Timestamp | None


class WebhookWithSecret(Webhook):
    secret: str
    """``whsec_…``, shown in this answer only."""


class Delivery(View):
    id: str
    """The receiver's ``webhook-id``: the same at every try."""
    type: str
    state: str
    """pending | delivered | dead"""
    tries: int
    last_status: int | None
    last_error: str | None
    """timeout | connection_failed | tls_failed | name_not_found | address_not_public | redirected | refused | …"""
    payload: dict[str, Any]
    created_at: Timestamp
    next_at: Timestamp | None
    ended_at: Timestamp | None


def _fields(row: WebhookRow) -> dict[str, Any]:
    names = ("id", "url", "labels", "note", "enabled", "failures", "created_at", "disabled_at")
    return {name: getattr(row, name) for name in names} | {"events": list(row.events)}


def _delivery(row: DeliveryRow) -> Delivery:
    return Delivery(
        id=row.message_id,
        type=row.type,
        state=row.state,
        tries=row.tries,
        last_status=row.last_status,
        last_error=row.last_error,
        payload=row.payload,
        created_at=row.created_at,
        next_at=row.next_at,
        ended_at=row.ended_at,
    )


def _check(state: ApiState, url: str | None, events: list[str] | None) -> None:
    """Raises Invalid ``bad_url``, ``unknown_event``."""
    if url is not None:
        parse_public_url(url, allow_private=state.config.private_webhooks)
    unknown = sorted(set(events or ()) - SUBSCRIBABLE)
    if unknown:
        raise Invalid("unknown_event", f"there is no event {unknown[0]!r}", known=sorted(SUBSCRIBABLE))


@router.post("", operation_id="create_webhook", response_model=WebhookWithSecret, status_code=201)
async def create_webhook(body: NewWebhook, caller: Admin, state: State) -> Response:
    """Make a webhook. Its secret is shown in this answer only."""
    _check(state, body.url, body.events)
    async with state.db.transaction() as tx:
        row, secret = await webhooks.create(
            tx, state.secrets, caller.project_id, body.url, body.events, labels=body.labels, note=body.note
        )
        await _record(tx, caller, "webhook.create", row.id, {"url": row.url})
    shown = WebhookWithSecret(**_fields(row), secret=secret)
    return answer(shown, 201, {"Location": f"/v1/webhooks/{row.id}"})


@router.get("", operation_id="list_webhooks", response_model=ListOf[Webhook])
async def list_webhooks(request: Request, caller: Admin, state: State, page: Paging) -> Response:
    only_known(request, ("limit", "cursor"), ())
    async with state.db.reading() as tx:
        found = await webhooks.list(tx, caller.project_id, page)
    data = [Webhook(**_fields(row)) for row in found.items]
    return answer(ListOf[Webhook](data=data, next=next_link(request, found.next)))


@router.get("/{webhook_id}", operation_id="get_webhook", response_model=Webhook)
async def get_webhook(webhook_id: str, caller: Admin, state: State) -> Response:
    async with state.db.reading() as tx:
        return answer(Webhook(**_fields(await _load(tx, caller, webhook_id))))


@router.patch("/{webhook_id}", operation_id="change_webhook", response_model=Webhook)
async def change_webhook(webhook_id: str, body: WebhookChange, caller: Admin, state: State) -> Response:
    """Change a webhook; ``enabled: true`` also takes back that it was disabled for its failures."""
    columns = body.model_dump(exclude_unset=True)
    _check(state, columns.get("url"), columns.get("events"))
    async with state.db.transaction() as tx:
        row = await _load(tx, caller, webhook_id)
        if columns:
            row = await webhooks.change(tx, caller.project_id, webhook_id, **columns) or row
            await _record(tx, caller, "webhook.change", webhook_id, columns)
    return answer(Webhook(**_fields(row)))


@router.delete("/{webhook_id}", operation_id="delete_webhook", status_code=204)
async def delete_webhook(webhook_id: str, caller: Admin, state: State) -> Response:
    """Delete a webhook with its deliveries; one that is under way may still arrive."""
    async with state.db.transaction() as tx:
        if not await webhooks.delete(tx, caller.project_id, webhook_id):
            raise NotFound("not_found")
        await _record(tx, caller, "webhook.delete", webhook_id, {})
    return Response(status_code=204)


@router.post("/{webhook_id}/rotate", operation_id="rotate_webhook", response_model=WebhookWithSecret)
async def rotate_webhook(webhook_id: str, caller: Admin, state: State) -> Response:
    """Give a webhook a new secret. For 24 hours deliveries carry a signature by the old one as well."""
    async with state.db.transaction() as tx:
        row = await _load(tx, caller, webhook_id)
        secret = await webhooks.rotate(tx, state.secrets, caller.project_id, webhook_id)
        if secret is None:
            raise NotFound("not_found")
        await _record(tx, caller, "webhook.rotate", webhook_id, {})
    return answer(WebhookWithSecret(**_fields(row), secret=secret))


@router.post("/{webhook_id}/test", operation_id="test_webhook", response_model=Delivery, status_code=202)
async def test_webhook(webhook_id: str, caller: Admin, state: State) -> Response:
    """Queue a delivery of type ``webhook.test``; what came of it is in the list of deliveries."""
    async with state.db.transaction() as tx:
        _enabled(await _load(tx, caller, webhook_id))
        row = await deliveries.add_test(tx, caller.project_id, webhook_id)
    return answer(_delivery(row), 202)


@router.get("/{webhook_id}/deliveries", operation_id="list_deliveries", response_model=ListOf[Delivery])
async def list_deliveries(
    webhook_id: str,
    request: Request,
    caller: Admin,
    state: State,
    page: Paging,
    in_state: Annotated[DeliveryState | None, Query(alias="state")] = None,
) -> Response:
    """List deliveries, newest first: what waits, and what ended in the last seven days."""
    only_known(request, ("limit", "cursor", "state"), ())
    states = () if in_state is None else (in_state.value,)
    async with state.db.reading() as tx:
        await _load(tx, caller, webhook_id)
        found = await deliveries.list(tx, caller.project_id, webhook_id, page, states)
    data = [_delivery(row) for row in found.items]
    return answer(ListOf[Delivery](data=data, next=next_link(request, found.next)))


@router.post(
    "/{webhook_id}/deliveries/{delivery_id}/redeliver",
    operation_id="redeliver", response_model=Delivery, status_code=202,
)  # fmt: skip
async def redeliver(webhook_id: str, delivery_id: str, caller: Admin, state: State) -> Response:
    """Send a delivery again, with its id and body, however it ended."""
    async with state.db.transaction() as tx:
        webhook = await _load(tx, caller, webhook_id)
        row = await deliveries.redeliver(tx, caller.project_id, webhook_id, delivery_id)
        if row is None:
            raise NotFound("not_found")
        _enabled(webhook)
        await _record(tx, caller, "webhook.redeliver", webhook_id, {"delivery": delivery_id})
    return answer(_delivery(row), 202)


async def _load(tx: Tx, caller: Caller, webhook_id: str) -> WebhookRow:
    row = await webhooks.get(tx, caller.project_id, webhook_id)
    if row is None:
        raise NotFound("not_found")
    return row


def _enabled(webhook: WebhookRow) -> None:
    if not webhook.enabled:
        raise Conflict("webhook_disabled", "the webhook is disabled: enable it first")


async def _record(tx: Tx, caller: Caller, action: str, webhook_id: str, detail: dict[str, Any]) -> None:
    await audit.record(tx, caller.project_id, caller.token.id, action, webhook_id, detail)
