"""``keep_on_failure_s``: the sandbox of a run that did not complete stays for a look, frozen, before it is collected.

It changes no grade: nothing runs in it meanwhile, but for what a person does in a shell, which marks the run *assisted*.
"""

import asyncio
import contextlib

from service.domain.errors import Unavailable
from service.domain.events import EventType, NewEvent
from service.domain.run_states import INFRASTRUCTURE, USER, ContainerState, EndedBecause, StopMode
from service.lifecycle.context import Context
from service.lifecycle.work import Work
from service.sandboxes.contract import EngineError, Sandbox, SandboxError, SandboxGone
from service.store import clock, runs
from service.store.database import Tx, retrying
from service.store.notifications import RUNS
from service.store.rows import AttemptRow, RunRow

_NEVER = frozenset({EndedBecause.COMPLETED, *USER, *INFRASTRUCTURE})
SCAN_S = 15.0


def kept(run: RunRow, cause: EndedBecause) -> bool:
    """Tell whether the sandbox is to be kept after this ending, so that nobody kills it before."""
    return run.keep_on_failure_s > 0 and cause not in _NEVER


async def freeze(sandbox: Sandbox) -> None:
    """Let nothing in it run on: its time is over, and what it left is to stay as it is. Best effort."""
    with contextlib.suppress(SandboxError):
        await sandbox.pause()


async def keep(ctx: Context, attempt: AttemptRow, work: Work) -> None:
    """Wait until the time is over or a discarding stop is asked for; returns at once where nothing is (left) to keep.

    Repeatable: a successor waits for the rest of the time only. Raises FenceLost, Unavailable.
    """
    cause = attempt.ended_because
    if cause is None or attempt.sandbox_id is None or not kept(work.run, cause):
        return
    try:
        sandbox = await ctx.sandboxes.open(attempt.sandbox_id)
        if (await sandbox.inspect()).state is not ContainerState.RUNNING:
            return
    except (SandboxGone, EngineError):
        return  # collection finds out what is the matter
    await freeze(sandbox)
    await _say(ctx, attempt, work.run.keep_on_failure_s)
    async with ctx.notifications.subscribe(RUNS, attempt.run_id) as changes:
        while (left := await _left(ctx, attempt)) > 0:
            await changes.wait(min(left, SCAN_S))


async def _say(ctx: Context, attempt: AttemptRow, seconds: float) -> None:
    words = {
        "text": f"the sandbox is kept for {seconds:g} s: workstead runs shell {attempt.run_id}",
        "seconds": seconds,
    }
    note = NewEvent(EventType.NOTE, words, "keeping", 0, ctx.clock.now())

    async def store(tx: Tx) -> None:
        await ctx.log.append(tx, attempt.run_id, attempt.n, attempt.fence, [note])

    await retrying(ctx.db, store, ctx.timing.database_patience_s)


async def _left(ctx: Context, attempt: AttemptRow) -> float:
    """Return the seconds that it is still kept."""
    try:
        async with ctx.db.reading() as tx:
            run, now = await runs.load(tx, attempt.run_id), await clock.now(tx)
    except Unavailable:
        await asyncio.sleep(ctx.timing.retry_s)
        return SCAN_S
    if run.stop_mode is StopMode.DISCARD or attempt.ended_at is None:
        return 0.0
    return run.keep_on_failure_s - (now - attempt.ended_at).total_seconds()
