"""Deliveries: in order per webhook, each leased to one sender at a time, tried again until they are given up.

Use it as ``from service.store import deliveries``: one name is that of a builtin.
"""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import func, select, text

from service.domain.ids import new_id
from service.domain.webhooks import DeliveryState, HookEvent
from service.store import audit
from service.store.database import Tx
from service.store.notifications import WEBHOOKS
from service.store.paging import Sort, fetch_page
from service.store.rows import Page, Slice
from service.store.rows_feeds import DeliveryRow, DueDelivery
from service.store.tables_feeds import webhook_deliveries, webhooks

LEASE_S = 60.0
"""How long a sender has a delivery for itself; much longer than it takes to send."""
KEPT_DAYS = 7
EXPIRES_DAYS = 3
"""Waiting longer than that, it is given up: a receiver that comes back does not want last week's."""
_LOOKED_AT = 200

# The oldest delivery that waits stands for its webhook: while it is not due, or leased, nothing after it is sent.
_HEADS = text(f"""
    SELECT h.id, w.project_id FROM webhooks w CROSS JOIN LATERAL (
        SELECT d.id, d.next_at FROM webhook_deliveries d
        WHERE d.webhook_id = w.id AND d.state = 'pending' ORDER BY d.id LIMIT 1) AS h
    WHERE w.enabled AND h.next_at <= clock_timestamp() AND w.project_id <> ALL(CAST(:without AS text[]))
    ORDER BY h.next_at LIMIT {_LOOKED_AT}""")  # noqa: S608 - constants only
_LEASE = text("""
    UPDATE webhook_deliveries d SET tries = d.tries + 1, next_at = clock_timestamp() + make_interval(secs => :lease_s)
    FROM webhooks w
    WHERE w.id = d.webhook_id AND w.enabled AND d.id IN (
        SELECT id FROM webhook_deliveries WHERE id = ANY(CAST(:ids AS bigint[])) AND state = 'pending'
        AND next_at <= clock_timestamp() FOR UPDATE SKIP LOCKED)
    RETURNING d.id, d.webhook_id, d.project_id, d.message_id, d.type, d.payload, d.tries, w.url, w.secret""")
_PURGE = text("""
    DELETE FROM webhook_deliveries WHERE id IN (
        SELECT id FROM webhook_deliveries
        WHERE state <> 'pending' AND ended_at < clock_timestamp() - make_interval(days => :kept) LIMIT 10000)""")
_EXPIRE = text("""
    UPDATE webhook_deliveries SET state = 'dead', last_error = 'expired', ended_at = clock_timestamp(), next_at = NULL
    WHERE state = 'pending' AND tries > 0 AND created_at < clock_timestamp() - make_interval(days => :expires)""")


async def due_heads(tx: Tx, without: Collection[str] = ()) -> Sequence[tuple[int, str]]:
    """Return (delivery, project) of webhooks whose next delivery is due, longest due first, at most 200."""
    rows = await tx.execute(_HEADS, {"without": [*without]})
    return [(row.id, row.project_id) for row in rows]


async def lease(tx: Tx, ids: Collection[int], lease_s: float = LEASE_S) -> list[DueDelivery]:
    """Take those of the deliveries that are still due and nobody else's, for ``lease_s`` seconds; counts a try each."""
    rows = await tx.execute(_LEASE, {"ids": [*ids], "lease_s": lease_s})
    return [DueDelivery.of(row) for row in rows.mappings()]


async def succeeded(tx: Tx, due: DueDelivery, status: int) -> bool:
    """Note that the receiver has it. False when the lease ran out and somebody else tries it by now."""
    ended = {"state": DeliveryState.DELIVERED, "ended_at": func.clock_timestamp(), "next_at": None, "last_error": None}
    if not await _write(tx, due, last_status=status, **ended):
        return False
    await tx.execute(
        webhooks.update().where(webhooks.c.id == due.webhook_id, webhooks.c.failures > 0).values(failures=0)
    )
    return True


async def failed(
    tx: Tx, due: DueDelivery, status: int | None, error: str, pause_s: float | None, disable_after: int
) -> bool:
    """Note a failure: again in ``pause_s`` seconds, or given up (null). False when the lease ran out.

    After ``disable_after`` failures in a row the webhook is disabled, which the audit log says.
    """
    columns: dict[str, Any] = {"last_status": status, "last_error": error}
    if pause_s is None:
        columns |= {"state": DeliveryState.DEAD, "ended_at": func.clock_timestamp(), "next_at": None}
    else:
        columns["next_at"] = func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, pause_s)
    if not await _write(tx, due, **columns):
        return False
    counted = webhooks.update().where(webhooks.c.id == due.webhook_id).values(failures=webhooks.c.failures + 1)
    failures = (await tx.execute(counted.returning(webhooks.c.failures))).scalar_one_or_none()
    if failures is not None and failures >= disable_after:
        await _disable(tx, due, {"failures": failures, "last_status": status, "last_error": error})
    return True


async def _write(tx: Tx, due: DueDelivery, **columns: Any) -> bool:
    mine = (webhook_deliveries.c.id == due.id, webhook_deliveries.c.tries == due.tries)
    waiting = webhook_deliveries.c.state == DeliveryState.PENDING
    query = webhook_deliveries.update().where(*mine, waiting).values(columns).returning(webhook_deliveries.c.id)
    return (await tx.execute(query)).one_or_none() is not None


async def _disable(tx: Tx, due: DueDelivery, why: dict[str, Any]) -> None:
    open_ = (webhooks.c.id == due.webhook_id, webhooks.c.enabled.is_(True))
    query = webhooks.update().where(*open_).values(enabled=False, disabled_at=func.clock_timestamp())
    if (await tx.execute(query.returning(webhooks.c.id))).one_or_none() is not None:
        await audit.record(tx, due.project_id, "webhooks", "webhook.disable", due.webhook_id, why)


async def add_test(tx: Tx, project_id: str, webhook_id: str) -> DeliveryRow:
    """Queue a delivery that says nothing. The caller has checked that the webhook is the project's."""
    now = (await tx.execute(select(func.clock_timestamp()))).scalar_one()
    nothing: dict[str, Any] = {"labels": {}}
    stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    values: dict[str, Any] = {
        "webhook_id": webhook_id,
        "project_id": project_id,
        "message_id": new_id("msg"),
        "type": HookEvent.TEST,
        "payload": {"type": HookEvent.TEST, "timestamp": stamp, "data": nothing},
        "state": DeliveryState.PENDING,
        "next_at": now,
    }
    query = webhook_deliveries.insert().values(values).returning(webhook_deliveries)
    row = (await tx.execute(query)).mappings().one()
    await tx.execute(select(func.pg_notify(WEBHOOKS, webhook_id)))
    return DeliveryRow.of(row)


async def list(
    tx: Tx, project_id: str, webhook_id: str, page: Page, states: Collection[str] = ()
) -> Slice[DeliveryRow]:
    """Return deliveries of the project's webhook, newest first. Raises Invalid("invalid_cursor" | "invalid_limit")."""
    table = webhook_deliveries
    query = select(table).where(table.c.project_id == project_id, table.c.webhook_id == webhook_id)
    if states:
        query = query.where(table.c.state.in_(states))
    sort = Sort(table.c.created_at, descending=True)
    rows, following = await fetch_page(tx, query, sort, table.c.message_id, page)
    return Slice([DeliveryRow.of(row) for row in rows], following)


async def redeliver(tx: Tx, project_id: str, webhook_id: str, message_id: str) -> DeliveryRow | None:
    """Send a delivery again, with its id and body, however it ended; one that waits is tried at once.

    Null if the project's webhook has no such delivery.
    """
    table = webhook_deliveries
    mine = (table.c.project_id == project_id, table.c.webhook_id == webhook_id, table.c.message_id == message_id)
    again = {"state": DeliveryState.PENDING, "tries": 0, "next_at": func.clock_timestamp(), "ended_at": None}
    row = (await tx.execute(table.update().where(*mine).values(again).returning(table))).mappings().one_or_none()
    if row is None:
        return None
    await tx.execute(select(func.pg_notify(WEBHOOKS, webhook_id)))
    return DeliveryRow.of(row)


async def purge(tx: Tx) -> int:
    """Give up what has waited for days, forget what ended a week ago; return the number of rows."""
    expired = (await tx.execute(_EXPIRE, {"expires": EXPIRES_DAYS})).rowcount
    return expired + (await tx.execute(_PURGE, {"kept": KEPT_DAYS})).rowcount
