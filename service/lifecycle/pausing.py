"""Freezes the sandbox of a person's run while its row says *paused*, and keeps its deadline from coming nearer.

Called by ``drive``, beside the other watchers. After a loss of the worker the row still says what is to be; a pause that
lasts beyond its bound ends by itself.
"""

import asyncio
import contextlib

from service.domain.agents import Driver
from service.domain.errors import Unavailable
from service.lifecycle.agent_phase import Phase
from service.lifecycle.watchers import Deadline
from service.sandboxes.contract import SandboxError
from service.store import pauses
from service.store.notifications import RUNS

SCAN_S = 2.0
"""Most seconds between two looks, whatever notifications say."""


async def watch_pauses(phase: Phase, deadline: Deadline) -> None:
    """Never returns; does nothing for runs that only a stop can interrupt."""
    if phase.work.run.driver is not Driver.PERSON:
        await asyncio.Event().wait()
    async with phase.ctx.notifications.subscribe(RUNS, phase.attempt.run_id) as changes:
        first = True
        while True:
            with contextlib.suppress(Unavailable, SandboxError):
                now = await _standing(phase)
                await _follow(phase, deadline, now, first=first)
                first = False
            await changes.wait(SCAN_S)


async def _standing(phase: Phase) -> pauses.Standing:
    """Return what the rows say; ends a pause that takes too long."""
    run_id, n = phase.attempt.run_id, phase.attempt.n
    async with phase.ctx.db.reading() as tx:
        now = await pauses.standing(tx, run_id, n)
    if now.since is None or now.total_s < pauses.MOST_TIME.total_seconds():
        return now
    async with phase.ctx.db.transaction() as tx:
        await pauses.end(tx, run_id)
        return await pauses.standing(tx, run_id, n)


async def _follow(phase: Phase, deadline: Deadline, now: pauses.Standing, *, first: bool) -> None:
    if first and now.count:  # an earlier worker may have died between the row and the sandbox
        with contextlib.suppress(SandboxError):
            await phase.sandbox.unpause()
    if now.since is not None:
        await _freeze(phase, deadline)
    elif phase.frozen_at is not None:
        await phase.sandbox.unpause()
        phase.thaw()
        deadline.go_on(now.left_s)


async def _freeze(phase: Phase, deadline: Deadline) -> None:
    if phase.frozen_at is None:
        deadline.hold()
        phase.frozen_at = asyncio.get_running_loop().time()
    if not phase.frozen:
        await phase.sandbox.pause()
        phase.frozen = True
