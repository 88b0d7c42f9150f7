"""Idempotency-Key: the same request twice is done once (CONTRACTS 11).

Begin and finish in one transaction with the work, or begin in one of its own and finish with the work: a begun key
that nobody finished for ``ABANDONED`` may be begun anew.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.cleaning import clean_json
from service.domain.errors import Invalid
from service.store.database import Tx
from service.store.tables import idempotency_keys as keys

ABANDONED = timedelta(minutes=5)
KEPT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Stored:
    """The answer that was given; ``response`` is what :func:`finish` was given."""

    status: int
    response: Any


@dataclass(frozen=True, slots=True)
class InProgress:
    """Somebody else is doing it now: 409."""


async def begin(tx: Tx, project_id: str, route: str, key: str, body_hash: str) -> Stored | InProgress | None:
    """Return null when the caller is to do the work. Raises Invalid("idempotency_key_reused") for another body."""
    values = {"project_id": project_id, "route": route, "key": key, "body_hash": body_hash}
    new = insert(keys).values(values).on_conflict_do_nothing().returning(keys.c.key)
    if (await tx.execute(new)).one_or_none() is not None:
        return None
    query = select(keys, (keys.c.created_at < func.clock_timestamp() - ABANDONED).label("old"))
    row = (await tx.execute(query.where(_mine(project_id, route, key)).with_for_update())).mappings().one_or_none()
    if row is None:
        return InProgress()
    if row["body_hash"] != body_hash:
        raise Invalid("idempotency_key_reused", "this Idempotency-Key was used with another body")
    if row["status"] is not None:
        return Stored(row["status"], row["response"])
    if not row["old"]:
        return InProgress()
    again = keys.update().where(_mine(project_id, route, key)).values(created_at=func.clock_timestamp())
    await tx.execute(again)
    return None


async def finish(tx: Tx, project_id: str, route: str, key: str, status: int, response: Any) -> None:
    """Store the answer for those who ask again."""
    query = keys.update().where(_mine(project_id, route, key))
    await tx.execute(query.values(status=status, response=clean_json(response)))


async def abandon(tx: Tx, project_id: str, route: str, key: str) -> None:
    """Forget a begun key whose work failed, so that it may be tried again at once."""
    await tx.execute(keys.delete().where(_mine(project_id, route, key), keys.c.status.is_(None)))


async def purge(tx: Tx) -> int:
    """Delete keys older than 24 hours; return how many."""
    old = keys.c.created_at < func.clock_timestamp() - KEPT
    return (await tx.execute(keys.delete().where(old))).rowcount


def _mine(project_id: str, route: str, key: str) -> ColumnElement[bool]:
    return and_(keys.c.project_id == project_id, keys.c.route == route, keys.c.key == key)
