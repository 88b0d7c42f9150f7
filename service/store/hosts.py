"""Hosts: where sandboxes run. One worker process at a time owns a host: the one with its epoch."""

from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from service.store.cleaning import clean_json
from service.store.database import Tx
from service.store.rows import HostRow
from service.store.tables import hosts


async def register(tx: Tx, host: HostRow) -> HostRow:
    """Insert or replace the host's row; its state, epoch and heartbeat become those of the caller."""
    values = {
        "state": host.state,
        "epoch": host.epoch,
        "slots": host.slots,
        "runtimes": [*host.runtimes],
        "environments": [*host.environments],
        "labels": clean_json(host.labels),
        "facts": clean_json(host.facts),
        "beat_at": func.clock_timestamp(),
    }
    query = insert(hosts).values(id=host.id, **values)
    query = query.on_conflict_do_update(index_elements=[hosts.c.id], set_=values).returning(hosts)
    return HostRow.of((await tx.execute(query)).mappings().one())


async def beat(tx: Tx, host_id: str, epoch: str) -> bool:
    """Write the heartbeat; False when the host has another epoch or was declared lost: stop working then."""
    mine = (hosts.c.id == host_id, hosts.c.epoch == epoch, hosts.c.state != "lost")
    query = hosts.update().where(*mine).values(beat_at=func.clock_timestamp()).returning(hosts.c.id)
    return (await tx.execute(query)).one_or_none() is not None


async def stale(tx: Tx, after_s: float) -> list[HostRow]:
    """Return the hosts, not declared lost yet, whose last heartbeat is older than ``after_s`` (database's clock)."""
    limit = func.clock_timestamp() - timedelta(seconds=after_s)
    query = select(hosts).where(hosts.c.beat_at < limit, hosts.c.state != "lost").order_by(hosts.c.id)
    return [HostRow.of(row) for row in (await tx.execute(query)).mappings()]


async def get(tx: Tx, host_id: str) -> HostRow | None:
    row = (await tx.execute(select(hosts).where(hosts.c.id == host_id))).mappings().one_or_none()
    return None if row is None else HostRow.of(row)


async def list(tx: Tx) -> list[HostRow]:
    rows = await tx.execute(select(hosts).order_by(hosts.c.id))
    return [HostRow.of(row) for row in rows.mappings()]
