"""Sends what waits in ``webhook_deliveries``: in order per webhook, many webhooks at once, none for the others.

Any number of processes may run it: a delivery is leased before it is sent. A receiver may get one twice, with the same
``webhook-id``, where a process died between sending and noting.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata

import structlog

from service.domain.errors import Invalid, Unavailable
from service.domain.public_urls import parse_public_url
from service.domain.webhooks import pause_s, signature_header
from service.store import deliveries
from service.store.database import Database, Tx, retrying
from service.store.notifications import WEBHOOKS, Notifications, Subscription
from service.store.rows_feeds import DueDelivery
from service.store.secret_box import SecretBox, SecretUnreadable
from service.store.webhooks import secrets_of
from service.workers.webhook_post import Poster, PostFailed

PURGE_S = 3600.0
NOTE_S = 30.0
"""How long noting an outcome is repeated while the database is away; less than the lease."""
GONE = 410
"""The receiver says that it wants nothing any more: as good as a row of failures."""
_AGENT = f"workstead/{metadata.version('workstead')}"
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Sending:
    concurrency: int = 16
    """Deliveries under way at once in this process."""
    per_project: int = 4
    """Of these, one project's: its hanging receivers leave room for the others."""
    timeout_s: float = 10.0
    max_tries: int = 10
    disable_after: int = 20
    """Failures of a webhook in a row, over all its deliveries."""
    allow_private: bool = False
    scan_s: float = 5.0
    pause: Callable[[int], float] = pause_s
    """Tries → seconds until the next."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    status: int | None
    error: str | None


class WebhookSender:
    def __init__(self, db: Database, notifications: Notifications, box: SecretBox, sending: Sending) -> None:
        self._db = db
        self._notifications = notifications
        self._box = box
        self._sending = sending
        self._busy: dict[int, tuple[str, asyncio.Task[None]]] = {}
        self._purged_at = float("-inf")

    async def run(self) -> None:
        """Send for ever."""
        options = self._sending
        poster = Poster(
            timeout_s=options.timeout_s, concurrency=options.concurrency, allow_private=options.allow_private
        )
        try:
            async with self._notifications.subscribe(WEBHOOKS) as woken:
                while True:
                    await self._look(poster, woken)
                    await woken.wait(options.scan_s)
        finally:
            for _, task in self._busy.values():
                task.cancel()
            await asyncio.gather(*(task for _, task in self._busy.values()), return_exceptions=True)
            await poster.close()

    async def _look(self, poster: Poster, woken: Subscription) -> None:
        """Begin as many deliveries as there is room for; those that end wake the loop for what comes after them."""
        try:
            await self._purge()
            due = await self._lease()
        except Unavailable:
            log.warning("webhooks_wait")
            return
        for delivery in due:
            task = asyncio.create_task(self._deliver(poster, delivery), name=f"webhook {delivery.webhook_id}")
            self._busy[delivery.id] = (delivery.project_id, task)
            task.add_done_callback(lambda done, id=delivery.id: self._done(id, done, woken))

    async def _lease(self) -> list[DueDelivery]:
        free = self._sending.concurrency - len(self._busy)
        if free < 1:
            return []
        of_project = Counter(project for project, _ in self._busy.values())
        async with self._db.transaction() as tx:
            full = [project for project, n in of_project.items() if n >= self._sending.per_project]
            chosen: list[int] = []
            for delivery, project in await deliveries.due_heads(tx, full):
                if delivery not in self._busy and of_project[project] < self._sending.per_project:
                    of_project[project] += 1
                    chosen.append(delivery)
            return await deliveries.lease(tx, chosen[:free]) if chosen else []

    def _done(self, delivery_id: int, task: asyncio.Task[None], woken: Subscription) -> None:
        self._busy.pop(delivery_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("webhook_task_failed", delivery=delivery_id, exc_info=error)
        woken.wake()

    async def _deliver(self, poster: Poster, due: DueDelivery) -> None:
        outcome = await self._post(poster, due)
        final = due.tries >= self._sending.max_tries or outcome.status == GONE

        async def note(tx: Tx) -> bool:
            if outcome.error is None:
                return await deliveries.succeeded(tx, due, outcome.status or 0)
            disable_after = 1 if outcome.status == GONE else self._sending.disable_after
            pause = None if final else self._sending.pause(due.tries)
            return await deliveries.failed(tx, due, outcome.status, outcome.error, pause, disable_after)

        try:
            noted = await retrying(self._db, note, NOTE_S)
        except Unavailable:  # the lease runs out, and it is sent again
            noted = False
        log.info("webhook_sent", webhook=due.webhook_id, tries=due.tries, status=outcome.status, error=outcome.error,
                 noted=noted)  # fmt: skip

    async def _post(self, poster: Poster, due: DueDelivery) -> _Outcome:
        now = int(time.time())
        body = json.dumps(due.payload, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            keys = secrets_of(self._box, due.webhook_id, due.secret).valid_at(datetime.fromtimestamp(now, UTC))
            url = parse_public_url(due.url, allow_private=self._sending.allow_private)
            headers = {
                "Content-Type": "application/json",
                "User-Agent": _AGENT,
                "webhook-id": due.message_id,
                "webhook-timestamp": str(now),
                "webhook-signature": signature_header(keys, due.message_id, now, body),
            }
            status = await poster.post(url, body, headers)
        except SecretUnreadable:
            return _Outcome(None, "secret_unreadable")
        except Invalid:
            return _Outcome(None, "bad_url")
        except PostFailed as error:
            return _Outcome(None, error.reason)
        return _Outcome(status, _complaint(status))

    async def _purge(self) -> None:
        if time.monotonic() - self._purged_at < PURGE_S:
            return
        async with self._db.transaction() as tx:
            await deliveries.purge(tx)
        self._purged_at = time.monotonic()


def _complaint(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    return "redirected" if 300 <= status < 400 else "refused"
