"""One agent phase under way in this process: what its watchers and its driver share."""

import asyncio
from dataclasses import dataclass

from service.lifecycle.context import Context
from service.lifecycle.recorder import Recorder
from service.lifecycle.stream import OutputPump
from service.lifecycle.work import Work
from service.sandboxes.contract import ContainerReport, EngineError, Sandbox
from service.scaffolds.contract import AgentReport
from service.store.rows import AttemptRow


@dataclass(slots=True)
class Phase:
    ctx: Context
    attempt: AttemptRow
    work: Work
    sandbox: Sandbox
    recorder: Recorder
    pump: OutputPump
    began: float
    said: AgentReport | None = None
    """Of a loop of ours: what its ending says."""

    frozen: bool = False
    """The sandbox of a person's run stands still."""
    frozen_at: float | None = None
    """Since when (of the loop's clock) its clock does."""
    frozen_s: float = 0.0
    """Of earlier pauses that this process saw."""

    @property
    def wall_s(self) -> float:
        now = asyncio.get_running_loop().time()
        frozen = self.frozen_s + (0.0 if self.frozen_at is None else now - self.frozen_at)
        return self.work.seconds_since_start + now - self.began - frozen

    def thaw(self) -> None:
        """Let the wall clock go on."""
        if self.frozen_at is not None:
            self.frozen_s += asyncio.get_running_loop().time() - self.frozen_at
        self.frozen_at, self.frozen = None, False

    @property
    def report(self) -> AgentReport | None:
        """What the driver said of its ending: a program by its output, a loop by itself."""
        return self.said or self.recorder.report()


async def inspect(ctx: Context, sandbox: Sandbox) -> tuple[ContainerReport | None, str | None]:
    """Ask the engine, a few times; the second value says why there is no answer."""
    pause, error = ctx.timing.retry_s, ""
    for _ in range(ctx.timing.destroy_tries):
        try:
            return await sandbox.inspect(), None
        except EngineError as e:
            error = e.detail or e.type
            await asyncio.sleep(pause)
            pause *= 2
    return None, error
