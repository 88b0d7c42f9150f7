"""Between the reason to end and the kill: the program is told, and may say its last words.

It can do no more with a model: its tokens are dead before the first signal.
"""

import asyncio
import contextlib
import signal

from service.domain.agents import StopStep
from service.lifecycle.stream import OutputPump
from service.sandboxes.contract import Sandbox, SandboxError
from service.store.rows import AttemptRow


def stop_steps(attempt: AttemptRow) -> list[StopStep]:
    """Return the ladder that the attempt was planned with."""
    return [StopStep.model_validate(step) for step in attempt.provenance.get("stop", [])]


async def wind_down(sandbox: Sandbox, pump: OutputPump, steps: list[StopStep]) -> None:
    """Send the signals in turn until the program ends, recording what it says. The container is killed afterwards."""
    if not steps:
        return
    output = asyncio.create_task(pump.run())
    try:
        for step in steps:
            if not await _tell(sandbox, step):
                break
            await asyncio.wait({output}, timeout=step.wait_s)
            if output.done():
                break
    finally:
        output.cancel()
        with contextlib.suppress(asyncio.CancelledError, SandboxError):
            await output


async def _tell(sandbox: Sandbox, step: StopStep) -> bool:
    try:
        return await sandbox.signal(signal.Signals[f"SIG{step.signal}"])
    except SandboxError:
        return False
