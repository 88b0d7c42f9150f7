"""Takes one attempt through its steps, whatever happens in them."""

import asyncio
from dataclasses import dataclass

import structlog

from service.domain.errors import FenceLost, NotFound, Unavailable
from service.domain.run_states import EndedBecause
from service.lifecycle import STEPS
from service.lifecycle.context import Context
from service.lifecycle.failure import fail_attempt
from service.store import attempts
from service.store.rows import AttemptRow

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    tries: int = 5
    """Of one step, before the attempt ends as ``infra_error``."""
    first_pause_s: float = 0.5
    """Doubles up to ``last_pause_s``."""
    last_pause_s: float = 15.0


async def run_attempt(ctx: Context, attempt: AttemptRow, patience: Patience = Patience()) -> None:
    """Work until the attempt is terminal, belongs to somebody else, or is gone with its run."""
    with structlog.contextvars.bound_contextvars(run=attempt.run_id, attempt=attempt.n):
        try:
            await _steps(ctx, attempt, patience)
        except (FenceLost, NotFound) as error:
            log.info("attempt_dropped", why=error.type)


async def _steps(ctx: Context, attempt: AttemptRow, patience: Patience) -> None:
    failures = 0
    pause = patience.first_pause_s
    while (now := await _reload(ctx, attempt)) is not None:
        step = STEPS[now.state]
        if step is None:
            return
        problem = await _one_step(ctx, now)
        if problem is None:
            failures, pause = 0, patience.first_pause_s
            continue
        # A database or a disk that is away will come back; the run is held, not burnt.
        failures += not isinstance(problem, Unavailable)
        if failures >= patience.tries:
            evidence = {"engine_error": f"step after {now.state} failed: {type(problem).__name__}: {problem}"[:500]}
            await fail_attempt(ctx, now, EndedBecause.INFRA_ERROR, evidence)
            return
        await asyncio.sleep(pause)
        pause = min(pause * 2, patience.last_pause_s)


async def _one_step(ctx: Context, attempt: AttemptRow) -> Exception | None:
    """Run the step that the attempt's state asks for; return what went wrong, if it may be tried again."""
    step = STEPS[attempt.state]
    assert step is not None
    try:
        await step(ctx, attempt)
    except (FenceLost, NotFound):
        raise
    except Unavailable as error:
        log.warning("step_waits", state=attempt.state, why=error.type)
        return error
    except Exception as error:  # the process loop's edge: one run's surprise must not end the others
        log.exception("step_failed", state=attempt.state)
        return error
    return None


async def _reload(ctx: Context, attempt: AttemptRow) -> AttemptRow | None:
    """Return the attempt as it is now, or None if its fence has moved on. Waits for the database without end."""
    pause = 0.1
    while True:
        try:
            async with ctx.db.reading() as tx:
                now = await attempts.get(tx, attempt.run_id, attempt.n)
        except Unavailable:
            await asyncio.sleep(pause)
            pause = min(pause * 2, 5.0)
            continue
        return now if now is not None and now.fence == attempt.fence else None
