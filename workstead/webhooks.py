"""For receivers of webhooks: is a request from the service, unchanged and fresh? Needs nothing but its secret.

::

    event = verify(secret, request.headers, request.body, seen=seen)   # raises Unverified
    if event["type"] == "run.done": …

A delivery may arrive more than once (its ``webhook-id`` stays the same): act once per id.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, cast

from workstead.errors import WorksteadError

WINDOW_S = 300
"""How far a delivery's time may be from the receiver's, either way, in seconds."""
MAX_BODY = 1 << 20
_PREFIX = "whsec_"
_SIGNATURES = 8
_TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)


class Unverified(WorksteadError):
    """The request is not a fresh one of the service: answer 400, look at nothing in it. ``reason`` says what was wrong.

    missing_header | bad_timestamp | too_old | too_new | bad_signature | replayed | bad_body
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the webhook is not verified: {reason}")
        self.reason = reason


class Seen:
    """Remembers deliveries for as long as a copy of one would still be fresh; at most ``most`` of them.

    What is sent again by the service has a new time and counts as another delivery; a copy made on the way has not.
    """

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._until: OrderedDict[tuple[str, int], float] = OrderedDict()

    def add(self, message_id: str, timestamp: int, now: float) -> bool:
        """Note a verified delivery; False if it was here before."""
        while self._until and (len(self._until) > self._most or next(iter(self._until.values())) < now):
            self._until.popitem(last=False)
        if (message_id, timestamp) in self._until:
            return False
        self._until[message_id, timestamp] = now + 2 * WINDOW_S
        return True


def verify(
    secret: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    now: float | None = None,
    *,
    seen: Seen | None = None,
) -> dict[str, Any]:
    """Return the event ``{type, timestamp, data}`` of a delivery that is signed with ``secret`` (or one of several).

    ``body`` is the bytes as they came, ``now`` the time in seconds since 1970 (default: the clock's). A time more than
    5 minutes off is refused, and with ``seen`` a copy of a delivery that was here before. Raises Unverified; ValueError
    for a secret that is none.
    """
    now = time.time() if now is None else now
    given = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, stamp, signatures = (given[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
    except KeyError as error:
        raise Unverified("missing_header") from error
    timestamp = _fresh(stamp, now)
    if len(body) > MAX_BODY:
        raise Unverified("bad_body")
    _check_signature(
        [secret] if isinstance(secret, str) else secret, f"{message_id}.{timestamp}.".encode() + body, signatures
    )
    if seen is not None and not seen.add(message_id, timestamp, now):
        raise Unverified("replayed")
    return _event(body)


def _fresh(stamp: str, now: float) -> int:
    if not _TIMESTAMP.fullmatch(stamp):
        raise Unverified("bad_timestamp")
    timestamp = int(stamp)
    if timestamp < now - WINDOW_S:
        raise Unverified("too_old")
    if timestamp > now + WINDOW_S:
        raise Unverified("too_new")
    return timestamp


def _check_signature(secrets: Iterable[str], signed: bytes, header: str) -> None:
    given = [part.removeprefix("v1,") for part in header.split()[:_SIGNATURES] if part.startswith("v1,")]
    right = [base64.b64encode(hmac.new(_key(s), signed, hashlib.sha256).digest()) for s in secrets]
    # Every pair is compared, so that the time taken does not tell which one was nearly right.
    matches = [hmac.compare_digest(mine, one.encode()) for mine in right for one in given]
    if not any(matches):
        raise Unverified("bad_signature")


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("not a webhook secret: whsec_ and base64") from error
    if len(key) < 24:
        raise ValueError("not a webhook secret: too short")
    return key


def _event(body: bytes) -> dict[str, Any]:
    try:
        event: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unverified("bad_body") from error
    if not isinstance(event, dict):
        raise Unverified("bad_body")
    return cast("dict[str, Any]", event)
