"""Hosts: where sandboxes run. One worker process at a time owns a host: the one with its epoch."""

from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.postgresql import JSONB, insert

from service.domain.cleaning import clean_json
from service.store.database import Tx
from service.store.notifications import QUEUE
from service.store.phases import notify
from service.store.rows import HostRow, Json
from service.store.tables import hosts


async def register(tx: Tx, host: HostRow) -> HostRow:
    """Insert or replace the host's row; its state, epoch and heartbeat become those of the caller.

    What operators set (labels, ``cordoned``, ``slots_limit``) stays.
    """
    values = {
        "state": host.state,
        "epoch": host.epoch,
        "slots": host.slots,
        "runtimes": [*host.runtimes],
        "environments": [*host.environments],
        "facts": clean_json(host.facts),
        "beat_at": func.clock_timestamp(),
    }
    query = insert(hosts).values(id=host.id, labels=clean_json(host.labels), **values)
    query = query.on_conflict_do_update(index_elements=[hosts.c.id], set_=values).returning(hosts)
    return HostRow.of((await tx.execute(query)).mappings().one())


async def beat(tx: Tx, host_id: str, epoch: str, facts: Json | None = None) -> str | None:
    """Write the heartbeat, and ``facts`` over those that are there; return the state (up | draining).

    Null when the host has another epoch or was declared lost: stop working then.
    """
    mine = (hosts.c.id == host_id, hosts.c.epoch == epoch, hosts.c.state != "lost")
    changed = hosts.c.facts.op("||")(bindparam("facts", clean_json(facts or {}), JSONB))
    query = hosts.update().where(*mine).values(beat_at=func.clock_timestamp(), facts=changed)
    return (await tx.execute(query.returning(hosts.c.state))).scalar_one_or_none()


async def change(tx: Tx, host_id: str, **columns: Any) -> HostRow | None:
    """Write what operators set (``cordoned``, ``slots_limit``, ``labels``, ``state``); null if there is no such host.

    A claim that is under way ends first; the next one sees it. Wakes claimers: there may be room now.
    """
    query = hosts.update().where(hosts.c.id == host_id).values(columns).returning(hosts)
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is None:
        return None
    await notify(tx, QUEUE, host_id)
    return HostRow.of(row)


async def stale(tx: Tx, after_s: float) -> list[HostRow]:
    """Return the hosts, not declared lost yet, whose last heartbeat is older than ``after_s`` (database's clock)."""
    limit = func.clock_timestamp() - timedelta(seconds=after_s)
    query = select(hosts).where(hosts.c.beat_at < limit, hosts.c.state != "lost").order_by(hosts.c.id)
    return [HostRow.of(row) for row in (await tx.execute(query)).mappings()]


async def get(tx: Tx, host_id: str) -> HostRow | None:
    row = (await tx.execute(select(hosts).where(hosts.c.id == host_id))).mappings().one_or_none()
    return None if row is None else HostRow.of(row)


async def list(tx: Tx) -> list[HostRow]:
    """Return the hosts by id, at most 500."""
    rows = await tx.execute(select(hosts).order_by(hosts.c.id).limit(500))
    return [HostRow.of(row) for row in rows.mappings()]
