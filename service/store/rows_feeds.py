"""Rows of webhooks and their deliveries."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from service.domain.webhooks import DeliveryState
from service.store.rows import Converters, Json, Row


@dataclass(frozen=True, slots=True)
class WebhookRow(Row):
    """A webhook without its secret."""

    id: str
    project_id: str
    url: str
    events: tuple[str, ...]
    labels: dict[str, str]
    note: str
    enabled: bool
    failures: int
    """In a row."""
    created_at: datetime
    disabled_at: datetime | None
    CONVERT: ClassVar[Converters] = {"events": tuple}


@dataclass(frozen=True, slots=True)
class DeliveryRow(Row):
    id: int
    webhook_id: str
    message_id: str
    """What the receiver sees as the message's id: the same at every try."""
    type: str
    payload: Json
    state: DeliveryState
    tries: int
    last_status: int | None
    last_error: str | None
    created_at: datetime
    next_at: datetime | None
    ended_at: datetime | None
    CONVERT: ClassVar[Converters] = {"state": DeliveryState}


@dataclass(frozen=True, slots=True)
class DueDelivery(Row):
    """A delivery that this process alone may send now. ``secret`` is sealed; ``tries`` counts this one."""

    id: int
    webhook_id: str
    project_id: str
    message_id: str
    type: str
    payload: Json
    tries: int
    url: str
    secret: bytes
    CONVERT: ClassVar[Converters] = {"secret": bytes}
