"""Webhooks of a project. Their secrets are sealed; only who opens the box reads them.

Use it as ``from service.store import webhooks``: one name is that of a builtin.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select

from service.domain.errors import Conflict
from service.domain.ids import new_id
from service.domain.webhooks import HookSecrets
from service.store.database import Tx
from service.store.notifications import WEBHOOKS
from service.store.paging import Sort, fetch_page
from service.store.rows import Page, Slice
from service.store.rows_feeds import WebhookRow
from service.store.secret_box import SecretBox
from service.store.tables import projects
from service.store.tables_feeds import webhook_deliveries, webhooks

MOST_PER_PROJECT = 50


async def create(
    tx: Tx, box: SecretBox, project_id: str, url: str, events: Sequence[str], *, labels: dict[str, str], note: str
) -> tuple[WebhookRow, str]:
    """Make a webhook; its secret is returned here and cannot be had again. Raises Conflict("too_many_webhooks")."""
    await tx.execute(select(projects.c.id).where(projects.c.id == project_id).with_for_update(key_share=True))
    there = select(func.count()).select_from(webhooks).where(webhooks.c.project_id == project_id)
    if (await tx.execute(there)).scalar_one() >= MOST_PER_PROJECT:
        raise Conflict("too_many_webhooks", f"a project has at most {MOST_PER_PROJECT} webhooks")
    webhook_id, keys = new_id("whk"), HookSecrets.new()
    values = {
        "id": webhook_id,
        "project_id": project_id,
        "url": url,
        "secret": _sealed(box, webhook_id, keys),
        "events": sorted(set(events)),
        "labels": labels,
        "note": note,
    }
    row = (await tx.execute(webhooks.insert().values(values).returning(webhooks))).mappings().one()
    return WebhookRow.of(row), keys.newest


async def get(tx: Tx, project_id: str, webhook_id: str) -> WebhookRow | None:
    """Return the project's webhook; null if there is none (or it is another project's)."""
    query = select(webhooks).where(webhooks.c.id == webhook_id, webhooks.c.project_id == project_id)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else WebhookRow.of(row)


async def list(tx: Tx, project_id: str, page: Page) -> Slice[WebhookRow]:
    """Return the project's webhooks, newest first. Raises Invalid("invalid_cursor" | "invalid_limit")."""
    query = select(webhooks).where(webhooks.c.project_id == project_id)
    rows, following = await fetch_page(tx, query, Sort(webhooks.c.created_at, descending=True), webhooks.c.id, page)
    return Slice([WebhookRow.of(row) for row in rows], following)


async def change(tx: Tx, project_id: str, webhook_id: str, **columns: Any) -> WebhookRow | None:
    """Write ``url``, ``events``, ``labels``, ``note``, ``enabled``; null if the project has no such webhook.

    Enabling forgets earlier failures, and what waits is tried at once.
    """
    mine = (webhooks.c.id == webhook_id, webhooks.c.project_id == project_id)
    if columns.get("enabled") is True:
        columns |= {"failures": 0, "disabled_at": None}
        waiting = (webhook_deliveries.c.webhook_id == webhook_id, webhook_deliveries.c.state == "pending")
        owned = webhook_deliveries.c.project_id == project_id
        await tx.execute(webhook_deliveries.update().where(*waiting, owned).values(next_at=func.clock_timestamp()))
        await tx.execute(select(func.pg_notify(WEBHOOKS, webhook_id)))
    elif columns.get("enabled") is False:
        columns |= {"disabled_at": func.clock_timestamp()}
    row = (await tx.execute(webhooks.update().where(*mine).values(columns).returning(webhooks))).mappings()
    found = row.one_or_none()
    return None if found is None else WebhookRow.of(found)


async def rotate(tx: Tx, box: SecretBox, project_id: str, webhook_id: str) -> str | None:
    """Give the webhook a new secret and return it; the one before is signed with for 24 hours more.

    Null if the project has no such webhook. Raises SecretUnreadable.
    """
    query = select(webhooks).where(webhooks.c.id == webhook_id, webhooks.c.project_id == project_id).with_for_update()
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is None:
        return None
    now = (await tx.execute(select(func.clock_timestamp()))).scalar_one()
    keys = secrets_of(box, webhook_id, row["secret"]).rotated(now)
    sealed = _sealed(box, webhook_id, keys)
    await tx.execute(webhooks.update().where(webhooks.c.id == webhook_id).values(secret=sealed))
    return keys.newest


async def delete(tx: Tx, project_id: str, webhook_id: str) -> bool:
    """Delete the webhook and its deliveries; False if the project has no such webhook."""
    mine = (webhooks.c.id == webhook_id, webhooks.c.project_id == project_id)
    return (await tx.execute(webhooks.delete().where(*mine).returning(webhooks.c.id))).one_or_none() is not None


def secrets_of(box: SecretBox, webhook_id: str, sealed: bytes) -> HookSecrets:
    """Raises SecretUnreadable."""
    return HookSecrets.model_validate_json(box.open(bytes(sealed), f"webhook {webhook_id}"))


def _sealed(box: SecretBox, webhook_id: str, keys: HookSecrets) -> bytes:
    return box.seal(keys.model_dump_json().encode(), f"webhook {webhook_id}")
