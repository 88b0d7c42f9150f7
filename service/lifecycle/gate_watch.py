"""What the gateway can tell of an attempt that ends it, and silence that nothing explains."""

import asyncio

from service.lifecycle.context import Context
from service.lifecycle.ports import GateState
from service.lifecycle.stream import OutputPump
from service.store.rows import AttemptRow

PROVIDER_WAIT_SHARE = 0.25
"""Of the wall clock: an attempt that waited longer for providers and did not complete is not the agent's failure
(CONTRACTS 6)."""
LAST_WORDS_S = 30.0
"""For a program to end by itself once the gateway answers its requests with a final refusal."""


async def watch_gate(ctx: Context, attempt: AttemptRow) -> GateState:
    """Return some time after the budget was spent or the provider had failed for good: most programs end by themselves."""
    state = await ctx.models.ended(attempt.run_id, attempt.n)
    await asyncio.sleep(LAST_WORDS_S)
    return state


async def watch_silence(ctx: Context, attempt: AttemptRow, pump: OutputPump) -> bool:
    """Return once there was neither output nor a model request for as long as the plan's hang rule says; else never."""
    hang_s: float | None = attempt.provenance.get("hang_s")
    if hang_s is None:
        await asyncio.Event().wait()
        return False
    while True:
        left = hang_s - pump.silent_s
        if left <= 0:
            state = await ctx.models.state(attempt.run_id, attempt.n)
            if state.last_request_ago_s is None or state.last_request_ago_s >= hang_s:
                return True
            left = hang_s - state.last_request_ago_s
        await asyncio.sleep(max(left, 0.05))


def provider_failed(state: GateState, wall_clock_s: float) -> bool:
    return state.provider_failed or state.provider_wait_s > PROVIDER_WAIT_SHARE * wall_clock_s
