"""Last part of *collect*: from ``collected`` to ``released``. Called by workers.host; it is the attempt's end.

The client does not wait for it: the deliverable is sealed and graded already.
"""

from service.domain.run_states import AttemptState
from service.lifecycle.context import Context
from service.lifecycle.failure import destroy
from service.store import attempts, tokens
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow


async def release(ctx: Context, attempt: AttemptRow) -> None:
    """Destroy the sandbox (the reaper does what fails here), revoke the run token, forget the spool."""
    if attempt.sandbox_id is not None:
        await destroy(ctx, attempt.sandbox_id)
    await ctx.models.close(attempt.run_id, attempt.n)
    ctx.crash.reach("release.destroyed")
    ctx.spool(attempt).remove()

    async def store(tx: Tx) -> None:
        await tokens.revoke_run(tx, attempt.run_id, attempt.n)
        await attempts.advance(tx, attempt, AttemptState.RELEASED)

    await retrying(ctx.db, store, ctx.timing.database_patience_s)
