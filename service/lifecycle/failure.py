"""Ends an attempt that infrastructure failed: a further attempt while the policy allows, never a score."""

import asyncio
from typing import Any

import structlog

from service.domain.events import EventType, NewEvent
from service.domain.run_states import EndedBecause
from service.lifecycle.context import Context
from service.sandboxes.contract import SandboxError
from service.store import attempts
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def fail_attempt(
    ctx: Context,
    attempt: AttemptRow,
    cause: EndedBecause,
    evidence: dict[str, Any],
    *,
    sandbox_id: str | None = None,
    retry: bool = True,
) -> None:
    """Remove the sandbox as far as that works (the reaper does the rest), then end the attempt as lost.

    ``retry=False``: a further attempt would fail the same way. Raises FenceLost, Unavailable.
    """
    sandbox_id = sandbox_id or attempt.sandbox_id
    if sandbox_id is not None:
        await destroy(ctx, sandbox_id)

    async def end(tx: Tx) -> None:
        words = {"text": f"attempt {attempt.n} ended: {cause}", **evidence}
        note = NewEvent(EventType.NOTE, words, "failure", 0, ctx.clock.now())
        await ctx.log.append(tx, attempt.run_id, attempt.n, attempt.fence, [note])
        await attempts.end_lost(tx, attempt, cause, evidence, retry=retry)

    await retrying(ctx.db, end, ctx.timing.database_patience_s)
    ctx.spool(attempt).remove()


async def destroy(ctx: Context, sandbox_id: str) -> bool:
    """Destroy the sandbox in a few tries; False leaves it to the reaper."""
    ctx.desktops.drop(sandbox_id)
    pause = ctx.timing.retry_s
    for _ in range(ctx.timing.destroy_tries):
        try:
            await ctx.sandboxes.backend.remove(sandbox_id)
        except SandboxError as error:
            log.warning("destroy_failed", sandbox=sandbox_id, error=str(error))
            await asyncio.sleep(pause)
            pause *= 2
        else:
            ctx.sandboxes.release(sandbox_id)
            return True
    ctx.sandboxes.release(sandbox_id)
    return False
