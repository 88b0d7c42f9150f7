"""Waits for the end of what drives a run: a program inside, a loop of ours, a client outside (DESIGN.md section 1).

Each is followed again after a loss that the sandbox survives. None of them decides a cause.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from service.domain.agents import Driver
from service.domain.errors import Fault
from service.domain.run_states import ContainerState
from service.lifecycle.agent_phase import Phase, inspect
from service.lifecycle.loop_access import loop_access
from service.lifecycle.loop_drive import run_loop
from service.lifecycle.model_access import needs_gateway, open_gateway
from service.lifecycle.plan_inputs import plan_context
from service.lifecycle.remote_drive import wait_finish
from service.models.messages import GatewayAway
from service.sandboxes.contract import Exited, LauncherLost

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def follow(phase: Phase) -> Exited | None:
    """Return the driver's ending, or None when the launcher is gone for good. Raises FenceLost, Unavailable."""
    once = {
        Driver.KIT: phase.pump.run,
        Driver.LOOP: lambda: _loop(phase),
        Driver.REMOTE: lambda: _remote(phase),
        Driver.PERSON: lambda: _remote(phase),
    }.get(phase.work.run.driver)
    if once is None:
        raise Fault("not_driven", f"a run of driver {phase.work.run.driver} has no agent phase")
    return await _until_lost(phase, once)


async def _until_lost(phase: Phase, once: Callable[[], Awaitable[Exited]]) -> Exited | None:
    loop = asyncio.get_running_loop()
    lost_since: float | None = None
    while True:
        try:
            return await once()
        except GatewayAway:
            await asyncio.sleep(phase.ctx.timing.retry_s)
        except LauncherLost as error:
            now = loop.time()
            lost_since = now if lost_since is None or phase.pump.wrote_since(lost_since) else lost_since
            report, _ = await inspect(phase.ctx, phase.sandbox)
            alive = report is None or report.state is ContainerState.RUNNING
            if not alive or now - lost_since > phase.ctx.timing.launcher_patience_s:
                log.info("launcher_lost", run=phase.attempt.run_id, attempt=phase.attempt.n, error=str(error))
                return None
            await asyncio.sleep(phase.ctx.timing.retry_s)


async def _loop(phase: Phase) -> Exited:
    ctx, attempt, work = phase.ctx, phase.attempt, phase.work
    access = await loop_access(ctx, attempt, work)
    await open_gateway(ctx, attempt, work, phase.sandbox, work.seconds_left)
    context = plan_context(
        work.agent,
        work.models,
        sample=work.run.sample,
        seconds=work.seconds_left,
        deadline_unix=_deadline(phase),
        policy=work.run.network.policy,
        manifest=work.manifest,
    )
    ended = await run_loop(ctx, attempt, work, phase.sandbox, context, access)
    phase.said = ended.report
    return ended.exited


def _deadline(phase: Phase) -> int:
    return int(phase.ctx.clock.now().timestamp() + max(0.0, phase.work.seconds_left))


async def _remote(phase: Phase) -> Exited:
    async def regrant(token_hash: str) -> None:
        del token_hash  # the grant names every token of the attempt
        await open_gateway(phase.ctx, phase.attempt, phase.work, phase.sandbox, phase.work.seconds_left)

    return await wait_finish(phase.ctx, phase.attempt, phase.work, regrant if needs_gateway(phase.work) else None)
