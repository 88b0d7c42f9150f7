"""The worker process of one Docker host: owns the host id, takes over what an earlier process left, works on runs.

Whoever holds both the file lock and the database lock of a host id knows that no other process of it is left.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import structlog

from service.domain.errors import Conflict, Unavailable
from service.domain.ids import new_id
from service.lifecycle.context import Context
from service.sandboxes.contract import SandboxError
from service.store import attempts, hosts
from service.store.database import Tx, retrying
from service.store.notifications import QUEUE
from service.store.phases import notify
from service.store.rows import AttemptRow, HostRow
from service.workers.attempt_loop import Patience
from service.workers.bridge import FACT as BRIDGE
from service.workers.bridge import BridgePlace, serve_bridge
from service.workers.claims import Claims
from service.workers.heartbeat import Beating, Gauge, HostTaken, NoGauge, heartbeat
from service.workers.host_lock import host_flock
from service.workers.image_keeper import HostImages, ImageKeeper
from service.workers.reaper import Reaper
from service.workers.watchdog import Watching, watch_hosts

DRAIN_S = 8.0
"""For steps to come to a point where they can be left, after a signal."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HostConfig:
    host_id: str
    slots: int
    lock_dir: Path
    environments: Callable[[], Awaitable[Sequence[str]]]
    """Names and ids of the images that this host can run, asked again every minute."""
    brought: HostImages | None = None
    """The engine's side of images that projects bring; null: this host takes none."""
    bridge: BridgePlace | None = None
    """Where this worker's internal API listens; null: its runs cannot be driven from outside."""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    """E.g. ``untrusted_runtimes`` (service.store.rows.HostRow)."""
    gauge: Gauge = field(default_factory=NoGauge)
    """What is measured at registration and with every heartbeat."""
    beating: Beating = field(default_factory=Beating)
    watching: Watching = field(default_factory=Watching)
    patience: Patience = field(default_factory=Patience)
    scan_s: float = 5.0
    lock_wait_s: float = 30.0
    register_s: float = 60.0


async def run_host(ctx: Context, config: HostConfig, stop: asyncio.Event) -> None:
    """Work until ``stop`` is set; containers go on. Raises Conflict (host id taken), HostTaken, Unavailable at start."""
    name = f"workstead.host.{config.host_id}"
    async with (
        host_flock(config.lock_dir, config.host_id, wait_s=config.lock_wait_s),
        ctx.db.session_lock(name, wait_s=config.lock_wait_s) as lock_lost,
        serve_bridge(ctx, config.host_id, config.bridge) if config.bridge else contextlib.nullcontext(),
    ):
        keeper = ImageKeeper(ctx.db, ctx.notifications, config.brought, config.gauge)
        host = await _register(ctx, config, keeper, new_id("wrk"))
        await Reaper(ctx, config.host_id).sweep(at_start=True)
        found = await _take_over(ctx, host)
        claims = Claims(ctx, host, scan_s=config.scan_s, patience=config.patience)
        log.info("host_up", host=host.id, epoch=host.epoch, runtimes=host.runtimes, taken_over=len(found))
        claims.adopt(found)
        try:
            await _until_stopped(ctx, config, claims, keeper, stop, lock_lost)
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_S):
                    await claims.stop()


async def _register(ctx: Context, config: HostConfig, keeper: ImageKeeper, epoch: str) -> HostRow:
    runtimes, environments = await _offer(ctx, config, keeper)
    facts = config.facts | await config.gauge.read() | _bridge_fact(config)
    row = HostRow(config.host_id, epoch, config.slots, runtimes, environments, facts=facts)

    async def write(tx: Tx) -> HostRow:
        return await hosts.register(tx, row)

    return await retrying(ctx.db, write)


def _bridge_fact(config: HostConfig) -> dict[str, Any]:
    return {} if config.bridge is None else {BRIDGE: config.bridge.fact}


async def _take_over(ctx: Context, host: HostRow) -> list[AttemptRow]:
    async def take(tx: Tx) -> list[AttemptRow]:
        return await attempts.takeover(tx, host.id, host.epoch)

    return await retrying(ctx.db, take)


async def _until_stopped(
    ctx: Context,
    config: HostConfig,
    claims: Claims,
    keeper: ImageKeeper,
    stop: asyncio.Event,
    lock_lost: asyncio.Event,
) -> None:
    """Run the loops until the signal, or until the host is drained; raise what any of them raises."""
    host, drained = claims.host, asyncio.Event()
    beating = heartbeat(ctx.db, host.id, host.epoch, ctx.sandboxes, config.beating, config.gauge, drained)
    ending = asyncio.create_task(stop.wait())
    tasks: list[asyncio.Task[Any]] = [
        ending,
        asyncio.create_task(claims.run()),
        asyncio.create_task(beating),
        asyncio.create_task(_until_empty(claims, drained)),
        asyncio.create_task(watch_hosts(ctx.db, config.watching)),
        asyncio.create_task(Reaper(ctx, host.id).run()),
        asyncio.create_task(keeper.run()),
        asyncio.create_task(_keep_registered(ctx, config, claims, keeper)),
        asyncio.create_task(_keep_lock(ctx, config, lock_lost)),
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done - {ending}:
        task.result()


async def _until_empty(claims: Claims, drained: asyncio.Event) -> None:
    """Return when the host was told to drain and its last run is released."""
    while not drained.is_set() or claims.busy > 0:
        await drained.wait()
        await asyncio.sleep(1.0)
    log.info("host_drained", host=claims.host.id)


async def _keep_registered(ctx: Context, config: HostConfig, claims: Claims, keeper: ImageKeeper) -> None:
    """Tell what this host can run now: images come and go, and a runtime's self-test may have failed by chance."""
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(config.register_s):
                await keeper.changed.wait()
        keeper.changed.clear()
        try:
            offer = await _offer(ctx, config, keeper)
            if offer == (claims.host.runtimes, claims.host.environments):
                continue
            facts = claims.host.facts | await config.gauge.read()
            row = replace(claims.host, runtimes=offer[0], environments=offer[1], facts=facts)
            async with ctx.db.transaction() as tx:
                state = await hosts.beat(tx, row.id, row.epoch)
                if state is not None:
                    claims.host = await hosts.register(tx, replace(row, state=state))
                    await notify(tx, QUEUE, row.id)  # a run may wait for just this
        except (Unavailable, SandboxError) as error:
            log.warning("registration_waits", error=str(error))
            await asyncio.sleep(1.0)
            keeper.changed.set()


async def _offer(ctx: Context, config: HostConfig, keeper: ImageKeeper) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the runtimes and the images that this host has now. Raises SandboxError."""
    runtimes = await ctx.sandboxes.backend.offered_runtimes()
    return tuple(runtimes), tuple(sorted([*await config.environments(), *keeper.ids]))


async def _keep_lock(ctx: Context, config: HostConfig, lost: asyncio.Event) -> None:
    """Take the database's lock again when its connection broke. Raises HostTaken if somebody else was faster."""
    while True:
        await lost.wait()
        try:
            async with ctx.db.session_lock(f"workstead.host.{config.host_id}", wait_s=1.0) as lost_again:
                await lost_again.wait()
        except Unavailable:
            await asyncio.sleep(1.0)
        except Conflict as error:
            raise HostTaken(config.host_id) from error
