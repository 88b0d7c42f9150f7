"""Webhooks after Standard Webhooks: types of events, secrets, signatures, and when a delivery is tried again."""

import base64
import hashlib
import hmac
import random
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, Field

SECRET_PREFIX = "whsec_"  # noqa: S105 - a prefix
OLD_SECRET_LIFE = timedelta(hours=24)
FIRST_PAUSE_S = 5.0
LAST_PAUSE_S = 6 * 3600.0
_GROWTH = 4


class HookEvent(StrEnum):
    RUN_RUNNING = "run.running"
    RUN_AWAITING = "run.awaiting_confirmation"
    """A person is to decide: ``/v1/runs/{id}/confirmations``."""
    RUN_HELD = "run.held"
    RUN_DONE = "run.done"
    GRADING_DONE = "grading.done"
    OPERATION_DONE = "operation.done"
    EVALUATION_HELD = "evaluation.held"
    """A stop rule, a budget or a person lets no further run of it, or of one of its agents, begin."""
    EVALUATION_BUDGET = "evaluation.budget"
    """80 % of a budget of it, or of the project, are spent."""
    TEST = "webhook.test"
    """Sent on demand only."""


EVERYTHING = "*"
SUBSCRIBABLE = frozenset({e.value for e in HookEvent if e is not HookEvent.TEST} | {EVERYTHING})


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    """Given up; sent again by command only."""


class HookSecret(BaseModel):
    secret: str
    until: datetime | None = None
    """When it stops being signed with; null for the present one."""


class HookSecrets(BaseModel):
    """The secrets of one webhook, newest first: two while the old one is still valid."""

    keys: Annotated[list[HookSecret], Field(max_length=2)]

    @classmethod
    def new(cls) -> "HookSecrets":
        return cls(keys=[HookSecret(secret=new_secret())])

    @property
    def newest(self) -> str:
        return self.keys[0].secret

    def rotated(self, now: datetime) -> "HookSecrets":
        """Return secrets with a new one; the one before stays valid for 24 hours."""
        before = HookSecret(secret=self.newest, until=now + OLD_SECRET_LIFE)
        return HookSecrets(keys=[HookSecret(secret=new_secret()), before])

    def valid_at(self, now: datetime) -> list[str]:
        return [key.secret for key in self.keys if key.until is None or key.until > now]


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature_header(keys: Iterable[str], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of ``webhook-signature``: one ``v1`` signature per secret, separated by blanks."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(_signature(key, signed) for key in keys)


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def pause_s(tries: int) -> float:
    """Return the seconds before the next try after ``tries`` failures: 5 s, growing fourfold, up to 6 h, with jitter."""
    longest = min(FIRST_PAUSE_S * _GROWTH ** (min(tries, 12) - 1), LAST_PAUSE_S)
    return max(FIRST_PAUSE_S, longest * random.uniform(0.75, 1.0))  # noqa: S311 - jitter, not a secret
