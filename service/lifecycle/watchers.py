"""What can end an agent phase besides the program's own exit: deadline, stop, death of the container, a full disk.

Each watcher is a coroutine that returns when its reason has come. None of them decides a cause.
"""

import asyncio
import contextlib
from dataclasses import dataclass

from service.domain.errors import Unavailable
from service.domain.events import EventType, NewEvent
from service.domain.run_states import ContainerState, StopMode
from service.lifecycle.context import Context
from service.sandboxes.contract import ContainerReport, EngineError, ResourceSample, Sandbox, SandboxError
from service.store import clock, notifications, runs
from service.store.database import Tx
from service.store.rows import AttemptRow, RunRow


class Deadline:
    """A point on the event loop's monotonic clock that can only come nearer, but for a person's pauses and what a program waited."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time() + max(0.0, seconds)
        self._latest = float("inf")
        self._held = False
        self._changed = asyncio.Event()

    def shorten(self, seconds: float) -> None:
        """Bring it nearer for good: it also ends a pause."""
        self._latest = min(self._latest, self._loop.time() + max(0.0, seconds))
        self._at, self._held = min(self._at, self._latest), False
        self._changed.set()

    def hold(self) -> None:
        """Let it not come until :meth:`go_on`, unless it was brought nearer for good."""
        self._held = self._latest == float("inf")
        self._changed.set()

    def go_on(self, seconds: float) -> None:
        self._at, self._held = min(self._latest, self._loop.time() + max(0.0, seconds)), False
        self._changed.set()

    async def wait(self) -> None:
        while self._held or self._at > self._loop.time():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if self._held else self._at - self._loop.time()):
                    await self._changed.wait()
            self._changed.clear()


async def watch_stop(ctx: Context, attempt: AttemptRow, sandbox: Sandbox, deadline: Deadline) -> StopMode:
    """Return ``collect`` or ``discard`` once it is asked for; ``finish`` only brings the deadline nearer."""
    finishing = False
    async with ctx.notifications.subscribe(notifications.RUNS, attempt.run_id) as changes:
        while True:
            with contextlib.suppress(Unavailable):
                run, ago = await _stop_of(ctx, attempt)
                if run.stop_mode is StopMode.COLLECT or run.stop_mode is StopMode.DISCARD:
                    return run.stop_mode
                if run.stop_mode is StopMode.FINISH and not finishing:
                    finishing = True
                    left = max(0.0, run.limits.grace_s - ago)
                    deadline.shorten(left)
                    with contextlib.suppress(SandboxError):
                        await sandbox.announce_deadline(left)
            await changes.wait(ctx.timing.stop_scan_s)


async def _stop_of(ctx: Context, attempt: AttemptRow) -> tuple[RunRow, float]:
    async with ctx.db.reading() as tx:
        run = await runs.load(tx, attempt.run_id)
        if run.stop_requested_at is None:
            return run, 0.0
        return run, (await clock.now(tx) - run.stop_requested_at).total_seconds()


async def watch_container(ctx: Context, sandbox: Sandbox) -> ContainerReport:
    """Return when the engine says that the container runs no more. An engine that does not answer says nothing."""
    while True:
        await asyncio.sleep(ctx.timing.inspect_s)
        with contextlib.suppress(EngineError):
            report = await sandbox.inspect()
            if report.state is not ContainerState.RUNNING:
                return report


@dataclass(slots=True)
class ResourceWatch:
    """Samples of memory, time and disk; returns when a workspace without a hard quota is over its limit."""

    ctx: Context
    attempt: AttemptRow
    sandbox: Sandbox
    disk_bytes: int
    soft: bool
    peak_bytes: int = 0

    async def run(self) -> None:
        timing = self.ctx.timing
        pause = min(timing.disk_scan_s, timing.sample_s) if self.soft else timing.sample_s
        loop = asyncio.get_running_loop()
        due = loop.time() + timing.sample_s
        while True:
            await asyncio.sleep(pause)
            sample = await self._sample()
            if sample is None:
                continue
            if loop.time() >= due:
                due = loop.time() + timing.sample_s
                await self._record(sample)
            if self.soft and sample.disk_used_bytes is not None and sample.disk_used_bytes > self.disk_bytes:
                return

    async def _sample(self) -> ResourceSample | None:
        with contextlib.suppress(SandboxError):
            return await self.sandbox.sample()
        return None

    async def _record(self, sample: ResourceSample) -> None:
        now = self.ctx.clock.now()
        payload = {
            "memory_bytes": sample.memory_bytes,
            "cpu_s": sample.cpu_s,
            "disk_used_bytes": sample.disk_used_bytes,
            "oom_kills": sample.oom_kills,
        }
        event = NewEvent(EventType.RESOURCES, payload, "resources", int(now.timestamp() * 1000), now)
        self.peak_bytes = max(self.peak_bytes, sample.memory_bytes)

        async def store(tx: Tx) -> None:
            a = self.attempt
            await self.ctx.log.append(tx, a.run_id, a.n, a.fence, [event])
            await runs.update(tx, a.run_id, memory_peak_bytes=self.peak_bytes, disk_used_bytes=sample.disk_used_bytes)

        # A sample that finds no database is not worth keeping.
        with contextlib.suppress(Unavailable):
            async with self.ctx.db.transaction() as tx:
                await store(tx)
