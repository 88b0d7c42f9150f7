"""Notices hosts whose worker does not come back, runs that no host can take, evaluations that something must hold.

One process at a time looks.
"""

import asyncio
from dataclasses import dataclass

import structlog

from service.domain.errors import Conflict, Unavailable
from service.lifecycle.evaluations.sweeping import Memory, sweep
from service.store import attempts, holds, hosts
from service.store.database import Database

LOCK = "workstead.watchdog"
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Watching:
    every_s: float = 5.0
    stale_s: float = 30.0
    """Without a heartbeat: worth a line in the log."""
    lost_s: float = 180.0
    """Without a heartbeat: its attempts are fenced, its runs queued again while their policy allows."""
    hold_after_s: float = 5.0
    """In the queue with no host that could take it: then held, with the reason."""
    ramp_s: float = 5.0
    """Twice as many held runs come back to a provider after every so many seconds."""
    lock_retry_s: float = 30.0


async def watch_hosts(db: Database, times: Watching) -> None:
    """Watch for ever, as soon as nobody else does."""
    while True:
        try:
            async with db.session_lock(LOCK, wait_s=0.01) as lock_lost:
                await _watch(db, times, lock_lost)
        except (Conflict, Unavailable):
            pass
        await asyncio.sleep(times.lock_retry_s)


async def _watch(db: Database, times: Watching, lock_lost: asyncio.Event) -> None:
    warned: set[str] = set()
    memory = Memory()
    while not lock_lost.is_set():
        await look_once(db, times, warned)
        await sweep(db, memory)
        await asyncio.sleep(times.every_s)


async def look_once(db: Database, times: Watching, warned: set[str]) -> list[str]:
    """Fence the attempts of hosts that are lost; return those hosts. Raises Unavailable."""
    async with db.reading() as tx:
        stale = {h.id for h in await hosts.stale(tx, times.stale_s)}
        lost = [h.id for h in await hosts.stale(tx, times.lost_s)]
    for host_id in sorted(stale - warned):
        log.warning("host_stale", host=host_id)
    warned.clear()
    warned.update(stale)
    for host_id in lost:
        async with db.transaction() as tx:
            fenced = await attempts.fence_lost_host(tx, host_id)
        log.error("host_lost", host=host_id, attempts=len(fenced))
    async with db.transaction() as tx:
        await holds.release_placeable(tx)
        await holds.hold_unplaceable(tx, times.hold_after_s)
    async with db.transaction() as tx:
        await holds.release_cut_off(tx, doubles_every_s=times.ramp_s)
        await holds.hold_cut_off(tx)
    return lost
