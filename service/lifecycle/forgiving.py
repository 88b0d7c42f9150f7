"""Moves the deadline of a program that stood still because nobody of ours took its output (CONTRACTS 1: ``waited_for_host``).

Called by ``drive``, beside the other watchers. How long it waited is the launcher's word, and that is in the agent's hands:
it counts at most as long as nothing was written of the run, by the database's clock, and as the launcher itself allows.
"""

import asyncio
import contextlib

from service.domain.agents import Driver
from service.domain.events import EventType, NewEvent
from service.domain.run_states import AttemptState
from service.lifecycle.agent_phase import Phase
from service.lifecycle.model_access import needs_gateway, open_gateway
from service.lifecycle.watchers import Deadline
from service.sandboxes.contract import SandboxError
from service.store import attempts
from service.store.database import Tx, retrying

MOST_S = 900.0
"""In all, as the launcher's own."""
NOTICEABLE_S = 1.0


def forgiven_s(phase: Phase, waited_s: float) -> float:
    """Return how much of what the launcher says counts, since the start."""
    return max(0.0, min(waited_s, moved_s(phase) + phase.work.absent_s, MOST_S))


def moved_s(phase: Phase) -> float:
    """Return by how much the deadline was moved before."""
    attempt = phase.attempt
    if attempt.started_at is None or attempt.deadline_at is None:
        return 0.0
    given = (attempt.deadline_at - attempt.started_at).total_seconds()
    return max(0.0, given - phase.work.run.limits.wall_clock_s)


async def watch_waiting(phase: Phase, deadline: Deadline) -> None:
    """Never returns. After a loss of ours, moves the deadline once, by what the program waited. Raises Unavailable, FenceLost."""
    if phase.work.run.driver is Driver.KIT and phase.work.absent_s >= NOTICEABLE_S:
        waited = await phase.sandbox.waited_for_host_s()
        more = forgiven_s(phase, waited) - moved_s(phase)
        left = phase.work.seconds_left - (asyncio.get_running_loop().time() - phase.began) + more
        if more >= NOTICEABLE_S and left > 0:
            await _move(phase, deadline, more, left)
    await asyncio.Event().wait()


async def _move(phase: Phase, deadline: Deadline, more: float, left: float) -> None:
    ctx, attempt, now = phase.ctx, phase.attempt, phase.ctx.clock.now()
    payload = {"text": f"its deadline moved by {more:.1f} s: it had waited for this host", "moved_s": round(more, 3)}
    note = NewEvent(EventType.NOTE, payload, "deadline", int(now.timestamp() * 1e6), now)

    async def write(tx: Tx) -> None:
        await attempts.advance(tx, attempt, AttemptState.RUNNING, deadline_in_s=left)
        await ctx.log.append(tx, attempt.run_id, attempt.n, attempt.fence, [note])

    deadline.go_on(left)
    await retrying(ctx.db, write, ctx.timing.database_patience_s)
    with contextlib.suppress(SandboxError):
        await phase.sandbox.announce_deadline(left)
    if needs_gateway(phase.work):
        await open_gateway(ctx, attempt, phase.work, phase.sandbox, left)
