"""The agent phase of a run that a client drives: waits for the driver's ``finish`` where others wait for a program.

Called by ``drive``. The client acts through the API and the worker's bridge; here only its lease is watched. A driver
that falls silent loses the lease, and the run waits for another one until its wall clock ends.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from service.domain.errors import Unavailable
from service.domain.events import EventType, NewEvent
from service.domain.run_states import ExitReport
from service.lifecycle.context import Context
from service.lifecycle.work import Work
from service.sandboxes.contract import Exited
from service.store import clock, leases, tokens
from service.store.database import Tx
from service.store.fences import check_fence
from service.store.rows import AttemptRow
from service.store.rows_leases import LeaseRow

SOURCE = "driver"
SCAN_S = 5.0
"""Most seconds between two looks at the lease, whatever notifications say."""
CODES = {"success": 0, "failure": 1}
"""What a driver may say of its own ending, as an exit code: its word, as a program's is."""

Regrant = Callable[[str], Awaitable[None]]
"""Given the sha256 (hex) of a run token: lets the gateway's public side accept it for this attempt."""


async def wait_finish(ctx: Context, attempt: AttemptRow, work: Work, regrant: Regrant | None = None) -> Exited:
    """Say that the run may be claimed; return once its driver has said ``finish``. Repeatable after a takeover.

    ``regrant`` is called with the newest run token whenever a driver has claimed the run (null: it has no model).
    Raises FenceLost; a database that is away is waited for.
    """
    began = asyncio.get_running_loop().time()
    granted = ""
    async with ctx.notifications.subscribe("runs", attempt.run_id) as changes:
        await _until_written(ctx, attempt, work)
        while True:
            pause = SCAN_S
            try:
                lease, left = await _look(ctx, attempt)
            except Unavailable:
                lease, left = None, None
            if lease is not None and lease.finish is not None:
                wall_s = work.seconds_since_start + asyncio.get_running_loop().time() - began
                code = CODES.get(str(lease.finish.get("status")), 1)
                return Exited(ExitReport(code, None, wall_s, None))
            if lease is not None and regrant is not None:
                granted = await _grant(ctx, attempt, regrant, granted)
            if left is not None:
                pause = min(pause, max(0.05, left))
            await changes.wait(pause)


def driver_event(action: str, lease: LeaseRow, now: datetime) -> NewEvent:
    """Return the event of a lease's fate; each is in the log once, however often it is appended."""
    payload = {"action": action, "holder": lease.holder}
    return NewEvent(EventType.DRIVER, payload, f"{SOURCE}.{action}", int(lease.created_at.timestamp() * 1e6), now)


async def _until_written(ctx: Context, attempt: AttemptRow, work: Work) -> None:
    ready = NewEvent(EventType.RUN_READY, {"driver": work.run.driver}, f"{SOURCE}.ready", 0, ctx.clock.now())
    while True:
        try:
            async with ctx.db.transaction() as tx:
                await ctx.log.append(tx, attempt.run_id, attempt.n, attempt.fence, [ready])
        except Unavailable:
            await asyncio.sleep(ctx.timing.retry_s)
        else:
            return


async def _look(ctx: Context, attempt: AttemptRow) -> tuple[LeaseRow | None, float | None]:
    """Return the attempt's lease and the seconds that it still has; one that is over is taken away first."""
    async with ctx.db.reading() as tx:
        lease, now = await leases.get(tx, attempt.run_id), await clock.now(tx)
    if lease is None or lease.attempt != attempt.n:
        return None, None
    left = (lease.expires_at - now).total_seconds()
    if left > 0 or lease.finish is not None:
        return lease, left
    async with ctx.db.transaction() as tx:
        await _expire(ctx, tx, attempt)
    return None, None


async def _expire(ctx: Context, tx: Tx, attempt: AttemptRow) -> None:
    await check_fence(tx, attempt.run_id, attempt.n, attempt.fence)
    lost = await leases.expire(tx, attempt.run_id, attempt.n)
    if lost is not None:
        event = driver_event("lost", lost, ctx.clock.now())
        await ctx.log.append(tx, attempt.run_id, attempt.n, attempt.fence, [event])


async def _grant(ctx: Context, attempt: AttemptRow, regrant: Regrant, granted: str) -> str:
    """Let the newest run token in, if it is another one than ``granted``; return its hash."""
    try:
        async with ctx.db.reading() as tx:
            newest = await tokens.newest_of_run(tx, attempt.run_id, attempt.n)
        if newest is not None and newest != granted:
            await regrant(newest)
            return newest
    except Unavailable:
        pass  # the next look does it
    return granted
